import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import type { System, SystemProps } from "./system.ts"

type Door = System["doors"][number]

/** What the process depends on, and since when it is as it is. */
export const Servers = ({ query }: SystemProps) => (
  <Panel title="Servers" query={query} height={180} flush>
    <DataTable
      name="servers"
      label="Servers"
      columns={columns}
      rows={query.data?.doors ?? []}
      rowId={({ door }) => door}
      empty={<Empty>The process uses no server.</Empty>}
    />
  </Panel>
)

const columns: ReadonlyArray<Column<Door>> = [
  { id: "door", header: "Server", cell: ({ door }) => door },
  {
    id: "state",
    header: "State",
    main: true,
    cell: ({ reachable }) =>
      reachable === null ? (
        <StatusWord meaning="idle">not asked</StatusWord>
      ) : (
        <StatusWord meaning={reachable ? "good" : "bad"}>{reachable ? "reachable" : "unreachable"}</StatusWord>
      )
  },
  { id: "since", header: "Since", main: true, cell: ({ since }) => <When at={since} absent="not known" /> },
  { id: "variant", header: "Variant", main: true, cell: ({ variant }) => <code>{variant}</code> },
  {
    id: "data",
    header: "Data",
    cell: ({ door, lost_at_exit }) =>
      door === "upstream" ? (
        "–"
      ) : lost_at_exit ? (
        <StatusWord meaning="warning">lost at exit</StatusWord>
      ) : (
        <StatusWord meaning="good">kept</StatusWord>
      )
  }
]
