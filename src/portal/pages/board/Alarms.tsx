import type { UseQueryResult } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ApiError } from "../../api/ApiError.ts"
import type { Queues, Workers } from "../../api/TaskTypes.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { alarmsOf } from "./alarms.ts"
import styles from "./Board.module.css"

interface Props {
  readonly queues: UseQueryResult<Queues, ApiError>
  readonly workers: UseQueryResult<Workers, ApiError>
}

/** What needs somebody now, above all else. */
export const Alarms = ({ queues, workers }: Props) => {
  const alarms = alarmsOf({
    broker: queues.data?.broker,
    error: queues.error,
    queues: queues.data?.queues ?? [],
    workers: workers.data?.workers ?? [],
    // an old answer tells nothing of a worker that is silent now
    now: workers.dataUpdatedAt
  })
  return (
    <section className={styles.alarms} aria-label="Alarms" aria-live="polite">
      {queues.data !== undefined && alarms.length === 0 && (
        <p className={styles.calm}>
          <StatusWord meaning="good">no alarm</StatusWord> Every queue has consumers and flows.
        </p>
      )}
      {alarms.length > 0 && (
        <ul>
          {alarms.map(({ id, meaning, queue, sentence, word }) => (
            <li key={id} data-meaning={meaning}>
              <StatusWord meaning={meaning}>{word}</StatusWord>
              {queue !== undefined && (
                <Link to="/tasks" search={{ q: `queue:${queue}` }}>
                  <ForeignText>{queue}</ForeignText>
                </Link>
              )}
              <ForeignText>{sentence}</ForeignText>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
