import { Button, Group } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { useTasksApi, useTasksWrite } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import type { DeadLetterQueue, DeadLetterQueues } from "../../api/TaskTypes.ts"
import { tasksPath } from "../../api/tasks.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { Count } from "../../shared/words/Amounts.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { type Meaning, StatusWord } from "../../shared/words/StatusWord.tsx"

const meanings: Readonly<Record<DeadLetterQueue["verdict"], Meaning>> = {
  agrees: "good",
  not_indexed: "warning",
  taken_out: "idle",
  no_queue: "warning",
  no_answer: "warning"
}

const columns: ReadonlyArray<Column<DeadLetterQueue>> = [
  {
    id: "queue",
    header: "Queue",
    cell: ({ queue_name }) => (
      <Link to="/dead-letters" search={{ tab: "letters", queue_name }}>
        <ForeignText>{queue_name}</ForeignText>
      </Link>
    )
  },
  {
    id: "verdict",
    header: "Index and queue",
    main: true,
    cell: ({ explanation, verdict }) => (
      <span title={explanation}>
        <StatusWord meaning={meanings[verdict]}>{verdict.replaceAll("_", " ")}</StatusWord>
      </span>
    )
  },
  {
    id: "messages",
    header: "Messages",
    numeric: true,
    main: true,
    cell: ({ message_count }) => <Count of={message_count} />
  },
  { id: "open", header: "Open", numeric: true, cell: ({ open_count }) => <Count of={open_count} /> },
  { id: "unknown", header: "Unknown", numeric: true, cell: ({ unknown_count }) => <Count of={unknown_count} /> },
  { id: "replayed", header: "Replayed", numeric: true, cell: ({ replayed_count }) => <Count of={replayed_count} /> },
  { id: "replaced", header: "Replaced", numeric: true, cell: ({ replaced_count }) => <Count of={replaced_count} /> },
  { id: "archived", header: "Archived", numeric: true, cell: ({ archived_count }) => <Count of={archived_count} /> },
  { id: "actions", header: "Actions", main: true, cell: (queue) => <QueueActions queue={queue} /> }
]

/** Whether the records agree with the messages of the dead-letter queues. */
export const QueuesOfLetters = () => {
  const queues = useTasksApi<DeadLetterQueues>("/dlq/queues")
  const mayOperate = useAllowed("tasks:operate")
  return (
    <Panel query={queues} height={200} flush>
      <DataTable
        name="dlq-queues"
        label="Dead-letter queues"
        columns={columns}
        rows={queues.data?.queues ?? []}
        rowId={({ queue_name }) => queue_name}
        empty={
          <Empty
            action={<LinkButton path="/tasks/board">Look at the board</LinkButton>}
            command={
              mayOperate &&
              curlOf({
                method: "POST",
                address: `${tasksPath}/dlq/queues/index`,
                body: { queue_name: "mails.dlq" }
              })
            }
          >
            No dead letter has a record. After a loss of Redis, a queue that still has messages is indexed again by its
            name.
          </Empty>
        }
      />
    </Panel>
  )
}

type Walk = "index" | "remove-replayed"

const walks: Readonly<Record<Walk, readonly [title: string, what: string]>> = {
  index: ["Index the queue", "Makes a record for each message that has none, as after a loss of Redis."],
  "remove-replayed": [
    "Remove replayed messages",
    "Removes the messages from the queue whose records say that they were replayed. Open ones stay."
  ]
}

const QueueActions = ({ queue: { queue_name, replayed_count, verdict } }: { readonly queue: DeadLetterQueue }) => {
  const mayOperate = useAllowed("tasks:operate")
  const [asked, setAsked] = useState<Walk>()
  const tell = useTell()
  const walk = useTasksWrite<Readonly<Record<string, unknown>>>()
  if (!mayOperate) return null
  return (
    <Group gap={4} wrap="nowrap" justify="end">
      {verdict === "not_indexed" && (
        <Button variant="default" size="compact-sm" onClick={() => setAsked("index")}>
          Index
        </Button>
      )}
      {replayed_count > 0 && (
        <Button variant="default" size="compact-sm" onClick={() => setAsked("remove-replayed")}>
          Remove replayed
        </Button>
      )}
      {asked !== undefined && (
        <ChangeDialog
          title={walks[asked][0]}
          action={walks[asked][0]}
          isBusy={walk.isPending}
          error={walk.error}
          onClose={() => setAsked(undefined)}
          onConfirm={() =>
            walk.mutate(
              { path: `/dlq/queues/${asked}`, body: { queue_name } },
              {
                onSuccess: (found) => {
                  tell({ done: `${queue_name}: ${countsText(found)}.`, audit: { type: "tasks" } })
                  setAsked(undefined)
                }
              }
            )
          }
        >
          <p>{walks[asked][1]}</p>
        </ChangeDialog>
      )}
    </Group>
  )
}

/** The server counts what it has done by names of its own. */
const countsText = (found: Readonly<Record<string, unknown>>): string =>
  Object.entries(found)
    .filter(([, value]) => typeof value === "number" || typeof value === "boolean")
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${String(value)}`)
    .join(", ")
