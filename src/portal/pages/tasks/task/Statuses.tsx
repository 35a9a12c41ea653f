import { Skeleton } from "@mantine/core"
import { useMemo } from "react"
import type { StatusEvent } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../../shared/table/DataTable.tsx"
import { meaningOfTaskStatus } from "../../../shared/tasks/meanings.ts"
import { countedText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./Task.module.css"
import { type StreamState, useStatusStream } from "./useStatusStream.ts"

type Row = StatusEvent & { readonly place: number }

const json = (value: unknown): string | null => {
  const written = value === undefined ? "" : JSON.stringify(value)
  return written === "" || written === "{}" ? null : written
}

const columns: ReadonlyArray<Column<Row>> = [
  { id: "place", header: "#", numeric: true, width: 40, cell: ({ place }) => place },
  {
    id: "status",
    header: "Status",
    main: true,
    cell: ({ status }) => (
      <StatusWord meaning={meaningOfTaskStatus(status)}>
        <ForeignText>{status}</ForeignText>
      </StatusWord>
    )
  },
  { id: "timestamp", header: "Time", main: true, cell: ({ timestamp }) => <When at={timestamp} /> },
  {
    id: "message",
    header: "Message",
    main: true,
    wide: true,
    cell: ({ message }) => (message == null ? "–" : <ForeignText title={message}>{message}</ForeignText>)
  },
  {
    id: "result",
    header: "Result",
    cell: ({ result }) => (
      <code>
        <ForeignText>{json(result) ?? "–"}</ForeignText>
      </code>
    )
  },
  {
    id: "meta",
    header: "Meta",
    cell: ({ meta }) => (
      <code>
        <ForeignText>{json(meta) ?? "–"}</ForeignText>
      </code>
    )
  }
]

const words: Readonly<Record<StreamState, readonly ["good" | "waiting" | "warning" | "idle", string]>> = {
  connecting: ["waiting", "connecting"],
  replaying: ["waiting", "replaying"],
  live: ["good", "caught up, live"],
  ended: ["idle", "ended"],
  lost: ["warning", "reconnecting"],
  paused: ["idle", "paused"]
}

/** The list says this while it is empty. A stream that only begins has no words, because it does not know yet. */
const emptyWords: Readonly<Partial<Record<StreamState, string>>> = {
  live: "No status has come yet.",
  ended: "No status is stored.",
  lost: "The statuses cannot be read now. The page asks again by itself.",
  paused: "No status had come before the pause."
}

/** Every status of the task as it comes, each once and in order. */
export const Statuses = ({ taskId }: { readonly taskId: string }) => {
  const { events, reset, state } = useStatusStream(taskId)
  const rows = useMemo(() => events.map((event, index): Row => ({ ...event, place: index + 1 })).toReversed(), [events])
  const [meaning, word] = words[state]
  return (
    <Panel
      title="Statuses"
      note={
        <span className={styles.stream} aria-live="polite">
          <StatusWord meaning={meaning}>{word}</StatusWord> {countedText(events.length, "status", "statuses")}
          {reset !== undefined && <StatusWord meaning="warning">reset</StatusWord>}
          {reset}
        </span>
      }
      flush
    >
      {rows.length === 0 && emptyWords[state] === undefined ? (
        <Skeleton height={120} />
      ) : (
        <DataTable
          name="statuses"
          label="Statuses"
          columns={columns}
          rows={rows}
          rowId={({ event_id, place }) => `${place} ${event_id}`}
          empty={<Empty>{emptyWords[state]}</Empty>}
        />
      )}
    </Panel>
  )
}
