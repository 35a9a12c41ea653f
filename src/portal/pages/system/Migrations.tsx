import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { When } from "../../shared/words/When.tsx"
import type { System, SystemProps } from "./system.ts"

type Migration = System["migrations"][number]

export const Migrations = ({ query }: SystemProps) => {
  const migrations = query.data?.migrations ?? []
  const [latest] = migrations
  return (
    <Panel
      title="Migrations"
      note={latest === undefined ? undefined : `the schema is at ${latest.id}, ${latest.name}`}
      query={query}
      height={100}
      flush
    >
      <DataTable
        name="migrations"
        label="Migrations"
        columns={columns}
        rows={migrations}
        rowId={({ id }) => String(id)}
        empty={<Empty>No migration is recorded.</Empty>}
      />
    </Panel>
  )
}

const columns: ReadonlyArray<Column<Migration>> = [
  { id: "id", header: "Number", width: 90, cell: ({ id }) => id },
  { id: "name", header: "Name", main: true, cell: ({ name }) => <code>{name}</code> },
  { id: "at", header: "Applied", main: true, cell: ({ applied_at }) => <When at={applied_at} /> }
]
