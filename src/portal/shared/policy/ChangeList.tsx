import type { ResponseOf } from "../../api/Endpoints.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApiList } from "../../api/queries.ts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { PathLink } from "../links/PathLink.tsx"
import { Panel } from "../page/Panel.tsx"
import { type Column, DataTable } from "../table/DataTable.tsx"
import { FieldDiff } from "../words/FieldDiff.tsx"
import { When } from "../words/When.tsx"
import { actorOf } from "./actor.ts"
import { auditedFields } from "./auditedFields.ts"
import styles from "./ChangeList.module.css"

const path = "/admin-ui/admin/audit-events"
type Event = ResponseOf<"GET", typeof path>[number]

interface Props {
  /** The kind of object, as the audit log has it. */
  readonly target: string
  readonly id: string
}

const liveTopics = ["configuration"] as const

/** The audit events of one object, with what each changed. */
export const ChangeList = ({ id, target }: Props) => {
  const list = useApiList(path, { query: { target_type: target, target_id: id, limit: 50 } })
  useLiveRefresh(liveTopics, [path])
  const columns: ReadonlyArray<Column<Event>> = [
    { id: "time", header: "When", width: 120, main: true, cell: ({ created_at }) => <When at={created_at} /> },
    {
      id: "action",
      header: "Action",
      width: 150,
      main: true,
      cell: ({ action }) => <code>{action}</code>
    },
    {
      id: "actor",
      header: "By",
      width: 160,
      main: true,
      cell: (event) => <ForeignText>{actorOf(event)}</ForeignText>
    },
    {
      id: "difference",
      header: "What changed",
      main: true,
      cell: ({ after, before }) =>
        before === null ? (
          "made"
        ) : (
          <div className={styles.difference}>
            <FieldDiff before={auditedFields(before)} after={auditedFields(after)} />
          </div>
        )
    },
    {
      id: "event",
      header: "Event",
      width: 80,
      cell: ({ sequence }) => <PathLink path={`/audit?span=all&open=${sequence}`}>#{sequence}</PathLink>
    }
  ]
  return (
    <Panel title="Changes" query={list.query} height={240} flush>
      <DataTable
        name="changes"
        label="Changes"
        columns={columns}
        rows={list.rows}
        rowId={({ id: event }) => event}
        list={list}
        empty={<p className={styles.none}>The audit log has no event of this. Older events may be in an archive.</p>}
      />
    </Panel>
  )
}
