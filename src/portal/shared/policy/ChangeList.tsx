import type { ResponseOf } from "../../api/Endpoints.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi, useApiList } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { Panel } from "../page/Panel.tsx"
import { PathLink } from "../page/PathLink.tsx"
import { type Column, DataTable } from "../table/DataTable.tsx"
import { FieldDiff } from "../words/FieldDiff.tsx"
import { When } from "../words/When.tsx"
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
const mostTokens = 500

/** The audit events of one object, with what each changed. */
export const ChangeList = ({ id, target }: Props) => {
  const maySeeNames = useAllowed("operators:manage")
  const list = useApiList(path, { query: { target_type: target, target_id: id, limit: 50 } })
  const tokens = useApi("/admin-ui/admin/operator-tokens", { query: { limit: mostTokens } }, { enabled: maySeeNames })
  useLiveRefresh(liveTopics, [path])
  const nameOf = (token: string | null) =>
    token === null ? "the program" : (tokens.data?.find((one) => one.id === token)?.name ?? token)
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
      cell: ({ actor_token_id }) => <ForeignText>{nameOf(actor_token_id)}</ForeignText>
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
