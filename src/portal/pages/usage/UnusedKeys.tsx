import { type Range, useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { IdLink } from "../../shared/links/IdLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { FilterBar } from "../../shared/table/FilterBar.tsx"
import { When } from "../../shared/words/When.tsx"

const path = "/admin-ui/admin/usage/unused-keys"
type UnusedKey = ResponseOf<"GET", typeof path>[number]

const most = 1_000

const columns: ReadonlyArray<Column<UnusedKey>> = [
  {
    id: "name",
    header: "Key",
    cell: ({ key_id, key_prefix, name }) => <IdLink path={`/keys/${key_id}`}>{name ?? key_prefix}</IdLink>
  },
  { id: "prefix", header: "Prefix", cell: ({ key_prefix }) => <code>{key_prefix}</code> },
  {
    id: "used",
    header: "Last used",
    main: true,
    cell: ({ last_used_at }) => <When at={last_used_at} absent="never" />
  },
  { id: "created", header: "Created", cell: ({ created_at }) => <When at={created_at} /> }
]

export const unusedRequest = ({ from, to }: Pick<Range, "from" | "to">, projectId: string | undefined) => ({
  path,
  query: { project_id: projectId, from: from.toISOString(), to: to.toISOString(), limit: most }
})

/** Keys that nobody used in the range: they can be disabled, or asked about. */
export const UnusedKeys = () => {
  const { range } = useRange()
  const { text } = useTextSearch()
  const projectId = text("project_id")
  const keys = useApi(path, { query: unusedRequest(range, projectId).query })
  const rows = keys.data ?? []
  return (
    <Panel
      title="Keys without a request in this range"
      note={rows.length >= most ? `the newest ${most}` : undefined}
      query={keys}
      height={300}
      flush
    >
      {(instead) => (
        <DataTable
          instead={instead}
          name="unused-keys"
          label="Unused keys"
          columns={columns}
          rows={rows}
          rowId={({ key_id }) => key_id}
          toolbar={<FilterBar filters={[{ name: "project_id", label: "Project", isProject: true }]} />}
          empty={
            projectId === undefined ? (
              <Empty>Every key was used in this range.</Empty>
            ) : (
              <Empty>Every key of this project was used in this range.</Empty>
            )
          }
        />
      )}
    </Panel>
  )
}
