import type { UseQueryResult } from "@tanstack/react-query"
import type { ApiError } from "../../api/ApiError.ts"
import type { DeadLetterQueues, Queues, Workers } from "../../api/TaskTypes.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { type Alarm, alarmsOf } from "./alarms.ts"
import styles from "./Board.module.css"

interface Props {
  /** Until it is true, the alarms of queues and of their dead letters are not shown. */
  readonly areTold: boolean
  readonly queues: UseQueryResult<Queues, ApiError>
  readonly workers: UseQueryResult<Workers, ApiError>
  readonly letters: UseQueryResult<DeadLetterQueues, ApiError>
}

const pageOf = (queue: string, about: Alarm["letters"]): string => {
  const name = encodeURIComponent(queue)
  if (about === "open") return `/dead-letters?tab=letters&source_queue_name=${name}`
  return about === "replayed" ? "/dead-letters?tab=queues" : `/tasks?q=${encodeURIComponent(`queue:${queue}`)}`
}

/** What needs somebody now, above all else. */
export const Alarms = ({ areTold, letters, queues, workers }: Props) => {
  const isKnown = queues.data !== undefined && letters.data !== undefined
  const alarms = alarmsOf({
    broker: queues.data?.broker,
    hub: queues.data?.hub,
    errors: { queues: queues.error, "dead letters": letters.error },
    queues: areTold ? (queues.data?.queues ?? []) : [],
    letters: letters.data?.queues,
    workers: workers.data?.workers ?? [],
    // an old answer tells nothing of a worker that is silent now
    now: workers.dataUpdatedAt
  })
  return (
    <section className={styles.alarms} aria-label="Alarms" aria-live="polite">
      {isKnown && alarms.length === 0 && (
        <p className={styles.calm}>
          <StatusWord meaning="good">no alarm</StatusWord> Every queue has consumers and flows.
        </p>
      )}
      {alarms.length > 0 && (
        <ul>
          {alarms.map(({ id, letters: about, meaning, queue, sentence, word }) => (
            <li key={id} data-meaning={meaning}>
              <StatusWord meaning={meaning}>{word}</StatusWord>
              {queue !== undefined && (
                <PathLink path={pageOf(queue, about)}>
                  <ForeignText>{queue}</ForeignText>
                </PathLink>
              )}
              <ForeignText>{sentence}</ForeignText>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
