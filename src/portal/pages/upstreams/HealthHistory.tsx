import { Button } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApiList } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { When } from "../../shared/words/When.tsx"

type Event = ResponseOf<"GET", "/admin-ui/admin/audit-events">[number]

/** How the recorded health changed: the audit log has every check and every state that somebody recorded. */
export const HealthHistory = ({ name }: { readonly name: string | undefined }) => {
  const { change } = useTextSearch()
  const mayRead = useAllowed("audit:read")
  const list = useApiList(
    "/admin-ui/admin/audit-events",
    { query: { target_type: "provider_health", target_id: name, limit: 20 } },
    { enabled: mayRead }
  )
  if (!mayRead) return null
  return (
    <Panel
      title={name === undefined ? "History" : `History of ${name}`}
      query={list.query}
      height={160}
      flush
      actions={
        name !== undefined && (
          <Button variant="default" onClick={() => change({ name: undefined })}>
            Of all
          </Button>
        )
      }
    >
      <DataTable
        name="health-history"
        label="History of health"
        columns={columns}
        rows={list.rows}
        rowId={({ id }) => id}
        list={list}
        empty={
          name === undefined ? (
            <Empty>No check and no state is recorded yet.</Empty>
          ) : (
            <Empty
              action={
                <Button variant="default" onClick={() => change({ name: undefined })}>
                  Look at the checks of all
                </Button>
              }
            >
              No check and no state is recorded for this name alone.
            </Empty>
          )
        }
      />
    </Panel>
  )
}

const columns: ReadonlyArray<Column<Event>> = [
  { id: "at", header: "Time", width: 120, cell: ({ created_at }) => <When at={created_at} /> },
  {
    id: "action",
    header: "What",
    main: true,
    width: 200,
    cell: ({ action }) => (action.endsWith("check") ? "check" : "by hand")
  },
  { id: "by", header: "By", width: 140, cell: ({ actor_name }) => <ForeignText>{actor_name ?? "–"}</ForeignText> },
  {
    id: "difference",
    header: "Difference",
    main: true,
    cell: ({ sequence }) => <PathLink path={`/audit?span=all&open=${sequence}`}>event {sequence}</PathLink>
  }
]
