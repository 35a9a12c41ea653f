import { Button, Group } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { useTasksApi, useTasksList } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import type { DeadLetterSummary, Explanation, LetterPage } from "../../api/TaskTypes.ts"
import { taskPath } from "../../api/tasks.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { ExplainedSentence } from "../../shared/tasks/ExplainedSentence.tsx"
import { meaningOfVerdict, verdictWords } from "../../shared/tasks/meanings.ts"
import { ReplayDialog } from "../../shared/tasks/ReplayDialog.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { ArchiveDialog } from "./archive/ArchiveDialog.tsx"
import { letterName } from "./letterName.ts"
import styles from "./letters/DeadLetters.module.css"

const rowsOf = ({ items }: LetterPage): ReadonlyArray<DeadLetterSummary> => items

/** Letters of which nobody knows whether they were published again, and the two safe ways on. */
export const UnknownLane = () => {
  const list = useTasksList<LetterPage, DeadLetterSummary>(
    "/dlq/messages",
    { state: "replay_unknown", limit: 50 },
    rowsOf
  )
  return (
    <Panel
      query={list.query}
      height={200}
      empty={
        list.rows.length === 0 ? (
          <Empty>No replay is unknown. One is, where a crash or a lost answer came between publish and proof.</Empty>
        ) : undefined
      }
    >
      <p className={styles.choices}>
        A replay of these was begun, and the broker's answer is missing. <strong>If the task has run</strong> since,
        archive the letter. <strong>If it has not</strong>, replay it in any case. A second replay of one that ran makes
        it run twice.
      </p>
      <ul className={styles.lane}>
        {list.rows.map((letter) => (
          <UnknownLetter key={letter.dlq_id} letter={letter} />
        ))}
      </ul>
      {list.query.hasNextPage && (
        <Button variant="default" onClick={() => void list.query.fetchNextPage()}>
          Show more
        </Button>
      )}
    </Panel>
  )
}

const UnknownLetter = ({ letter }: { readonly letter: DeadLetterSummary }) => {
  const mayOperate = useAllowed("tasks:operate")
  const [asked, setAsked] = useState<"look" | "replay" | "archive">()
  const { dlq_id, replay_unknown_at, replay_unknown_by, source_queue_name, task_id } = letter
  const close = () => setAsked(undefined)
  return (
    <li>
      <Link to="/dead-letters/$dlqId" params={{ dlqId: dlq_id }}>
        <ForeignText>{letterName({ dlq_id, task_id })}</ForeignText>
      </Link>
      <span className={styles.stack}>
        unknown since <When at={replay_unknown_at} />
        {replay_unknown_by != null && <> by {replay_unknown_by}</>}
      </span>
      <Group gap={6}>
        {task_id !== null && (
          <Button variant="default" onClick={() => setAsked("look")}>
            Has it run?
          </Button>
        )}
        {mayOperate && (
          <>
            <Button variant="default" onClick={() => setAsked("archive")}>
              It ran: archive
            </Button>
            <Button variant="default" onClick={() => setAsked("replay")}>
              It did not: replay
            </Button>
          </>
        )}
      </Group>
      {asked === "look" && task_id !== null && <HasItRun taskId={task_id} />}
      {asked === "replay" && (
        <ReplayDialog dlqId={dlq_id} queue={source_queue_name} of={task_id ?? dlq_id} force onClose={close} />
      )}
      {asked === "archive" && (
        <ArchiveDialog selection={{ ids: [dlq_id] }} onClose={close} onDone={close}>
          <p>Say how you know that it ran, such as the status that came after the replay.</p>
        </ArchiveDialog>
      )}
    </li>
  )
}

/** Read when a person asks, and not for each row. */
const HasItRun = ({ taskId }: { readonly taskId: string }) => {
  const explanation = useTasksApi<Explanation>(taskPath`/executions/${taskId}/explain`)
  const { data } = explanation
  return (
    <Panel query={explanation} height={40}>
      {data !== undefined && (
        <p className={styles.choices}>
          <StatusWord meaning={meaningOfVerdict(data.verdict, data.status)}>{verdictWords(data.verdict)}</StatusWord>{" "}
          <ExplainedSentence parts={data.sentence_parts} />{" "}
          <Link to="/tasks/$taskId" params={{ taskId }}>
            All of it
          </Link>
        </p>
      )}
    </Panel>
  )
}
