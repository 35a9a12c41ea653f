import { Link } from "@tanstack/react-router"
import type { Letter, StatusEvent } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../../shared/table/DataTable.tsx"
import { meaningOfTaskStatus } from "../../../shared/tasks/meanings.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"

const retryOf = ({ meta }: StatusEvent): string => {
  const attempt = meta["retry_attempt"]
  return typeof attempt === "number" ? String(attempt) : "–"
}

const columns: ReadonlyArray<Column<StatusEvent>> = [
  {
    id: "status",
    header: "Status",
    cell: ({ status }) => (
      <StatusWord meaning={meaningOfTaskStatus(status)}>
        <ForeignText>{status}</ForeignText>
      </StatusWord>
    )
  },
  { id: "at", header: "Time", main: true, cell: ({ timestamp }) => <When at={timestamp} /> },
  { id: "retry", header: "Retry", numeric: true, main: true, cell: retryOf },
  {
    id: "message",
    header: "Message",
    main: true,
    wide: true,
    cell: ({ message }) => <ForeignText title={message ?? ""}>{message ?? "–"}</ForeignText>
  }
]

/** What the attempts of the task have said, before the letter and since. */
export const Attempts = ({ letter: { status_history, task_id } }: { readonly letter: Letter }) => (
  <Panel
    title="What its attempts have said"
    actions={
      task_id !== null && (
        <Link to="/tasks/$taskId" params={{ taskId: task_id }}>
          Timeline of the task
        </Link>
      )
    }
    flush
  >
    <DataTable
      name="letter-attempts"
      label="Statuses of the task"
      columns={columns}
      rows={status_history}
      rowId={({ event_id }) => event_id}
      empty={<Empty>No status of this task is stored.</Empty>}
    />
  </Panel>
)
