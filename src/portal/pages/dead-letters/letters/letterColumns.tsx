import { Link } from "@tanstack/react-router"
import type { DeadLetterSummary } from "../../../api/TaskTypes.ts"
import { ForeignId } from "../../../shared/foreign/ForeignId.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { shownText } from "../../../shared/foreign/marks.ts"
import type { Column } from "../../../shared/table/DataTable.tsx"
import { LetterWord } from "../../../shared/tasks/LetterWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { letterName } from "../letterName.ts"

const text = (value: string | null | undefined) => (value ? <ForeignText title={value}>{value}</ForeignText> : "–")

export const letterColumns: ReadonlyArray<Column<DeadLetterSummary>> = [
  {
    id: "task",
    header: "Task",
    csv: ["dlq_id", "task_id"],
    cell: ({ dlq_id, task_id }) => (
      <Link
        to="/dead-letters/$dlqId"
        params={{ dlqId: dlq_id }}
        aria-label={shownText(letterName({ dlq_id, task_id }))}
      >
        <ForeignId id={letterName({ dlq_id, task_id })} />
      </Link>
    )
  },
  { id: "state", header: "State", main: true, csv: ["state"], cell: (letter) => <LetterWord letter={letter} /> },
  {
    id: "at",
    header: "Dead since",
    main: true,
    labelled: true,
    csv: ["dead_lettered_at"],
    cell: ({ dead_lettered_at }) => <When at={dead_lettered_at} />
  },
  {
    id: "exception",
    header: "Exception",
    main: true,
    csv: ["exception_type"],
    cell: ({ exception_type }) => text(exception_type)
  },
  {
    id: "message",
    header: "Message",
    main: true,
    wide: true,
    csv: ["exception_message"],
    cell: ({ exception_message, reason }) => text(exception_message ?? reason)
  },
  {
    id: "reason",
    header: "Reason",
    hidden: true,
    csv: ["reason"],
    cell: ({ reason }) => (
      <code>
        <ForeignText>{reason}</ForeignText>
      </code>
    )
  },
  {
    id: "attempts",
    header: "Attempts",
    numeric: true,
    main: true,
    csv: ["retry_attempt", "max_retries"],
    cell: ({ max_retries, retry_attempt }) => `${retry_attempt + 1} of ${max_retries + 1}`
  },
  {
    id: "queue",
    header: "Queue",
    main: true,
    csv: ["source_queue_name"],
    cell: ({ source_queue_name }) => text(source_queue_name)
  },
  {
    id: "replays",
    header: "Replays",
    numeric: true,
    main: true,
    csv: ["replay_count"],
    cell: ({ replay_count }) => replay_count
  }
]
