import type { UseQueryResult } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ApiError } from "../../../api/ApiError.ts"
import { useTasksApi } from "../../../api/queries.ts"
import type { Explanation, Queues, Verdict } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { ExplainedSentence } from "../../../shared/tasks/ExplainedSentence.tsx"
import { meaningOfVerdict, verdictWords } from "../../../shared/tasks/meanings.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./Task.module.css"

interface PauseProps {
  readonly queue: string | null
  readonly verdict: Verdict
}

/** A pause of the queue concerns a task that waits or runs in it. For other verdicts nothing is said. */
const pauseWords: Partial<Record<Verdict, string>> = {
  being_handled: "This attempt goes on. Nothing else in the queue begins until it is resumed.",
  no_consumer: "Nothing in it begins until it is resumed.",
  queued: "Nothing in it begins until it is resumed.",
  waiting_for_retry: "Nothing in it begins until it is resumed."
}

/** A paused queue has no consumers. The reader learns who paused it, and why. */
const Pause = ({ queue, verdict }: PauseProps) => {
  const words = pauseWords[verdict]
  const queues = useTasksApi<Queues>("/queues", {}, { enabled: queue !== null && words !== undefined })
  const paused = queues.data?.queues.find((one) => one.queue === queue)?.paused
  if (paused == null || words === undefined) return null
  return (
    <p>
      <StatusWord meaning="warning">paused</StatusWord> <ForeignText>{paused.by ?? "Somebody"}</ForeignText> has paused{" "}
      <Link to="/tasks/board">
        <ForeignText>{queue}</ForeignText>
      </Link>{" "}
      <When at={paused.paused_at} />: <ForeignText>{paused.reason}</ForeignText>. {words}
    </p>
  )
}

/** Why a task is not done, in the words of the server. */
export const ExplainPanel = ({ explanation }: { readonly explanation: UseQueryResult<Explanation, ApiError> }) => {
  const { data } = explanation
  return (
    <Panel query={explanation} height={64}>
      {data !== undefined && (
        <div className={styles.explain}>
          <p>
            <StatusWord meaning={meaningOfVerdict(data.verdict, data.status)}>{verdictWords(data.verdict)}</StatusWord>{" "}
            <ExplainedSentence parts={data.sentence_parts} />
          </p>
          <p className={styles.beside}>
            {data.since !== null && !data.sentence_parts.some((part) => "time" in part && part.time === data.since) && (
              <span>
                since <When at={data.since} />
              </span>
            )}
            {data.missing_evidence.length > 0 && (
              <span>not known: {data.missing_evidence.map((name) => name.replaceAll("_", " ")).join(", ")}</span>
            )}
          </p>
          <Pause queue={data.queue_name} verdict={data.verdict} />
        </div>
      )}
    </Panel>
  )
}
