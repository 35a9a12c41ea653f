import { Button, Group } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { useApiList, withRows } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { type HealthEvent, healthStatuses, meaningOfHealth, type Recorded, recordedStates } from "./healthStates.ts"

interface Row extends HealthEvent {
  readonly recorded: ReadonlyArray<Recorded>
}

/** How the recorded health changed: the audit log has every check and every state that somebody recorded. */
export const HealthHistory = ({ subject }: { readonly subject: string | undefined }) => {
  const { change } = useTextSearch()
  const mayRead = useAllowed("audit:read")
  const list = useApiList(
    "/admin-ui/admin/audit-events",
    { query: { target_type: "provider_health", limit: 50 } },
    { enabled: mayRead }
  )
  if (!mayRead) return null
  const shown = withRows(list, (events) =>
    events
      // a check records the states of all
      .map(
        (event): Row => ({
          ...event,
          recorded: recordedStates(event).filter((state) => subject === undefined || state.subject === subject)
        })
      )
      .filter(({ recorded }) => subject === undefined || recorded.length > 0)
  )
  const ofAll = subject !== undefined && (
    <Button variant="default" onClick={() => change({ of: undefined })}>
      Of all
    </Button>
  )
  return (
    <Panel
      title={subject === undefined ? "History" : `History of ${subject}`}
      query={list.query}
      height={160}
      flush
      actions={ofAll}
    >
      <DataTable
        name="health-history"
        label="History of health"
        columns={columns}
        rows={shown.rows}
        rowId={({ id }) => id}
        list={shown}
        empty={
          <Empty>
            {subject === undefined ? "No check and no state is recorded yet." : "None of these events recorded it."}
          </Empty>
        }
      />
    </Panel>
  )
}

/** The states of many as their numbers. */
const States = ({ of: recorded }: { readonly of: ReadonlyArray<Recorded> }) => {
  const [only, ...others] = recorded
  if (only === undefined) return "–"
  if (others.length === 0) return <StatusWord meaning={meaningOfHealth[only.status]}>{only.status}</StatusWord>
  const counted = healthStatuses.flatMap((status) => {
    const count = recorded.filter((one) => one.status === status).length
    return count === 0 ? [] : [[status, count] as const]
  })
  return (
    <Group gap={6}>
      {counted.map(([status, count]) => (
        <StatusWord key={status} meaning={meaningOfHealth[status]}>
          {count} {status}
        </StatusWord>
      ))}
    </Group>
  )
}

const columns: ReadonlyArray<Column<Row>> = [
  { id: "at", header: "Time", width: 120, cell: ({ created_at }) => <When at={created_at} /> },
  { id: "status", header: "Found", main: true, width: 200, cell: ({ recorded }) => <States of={recorded} /> },
  {
    id: "reason",
    header: "Reason",
    cell: ({ recorded }) => (
      <code>{[...new Set(recorded.flatMap(({ reason }) => reason ?? []))].join(", ") || "–"}</code>
    )
  },
  {
    id: "action",
    header: "What",
    main: true,
    width: 120,
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
