import { Link } from "@tanstack/react-router"
import { LetterWord } from "../../../shared/tasks/LetterWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./Task.module.css"
import type { TaskData } from "./useTask.ts"

const mostReplays = 5

/** When dead letters of the task were replayed, and what became of them. The history of the task itself has only its attempts. */
export const Replays = ({ letters: { data, isPlaceholderData } }: Pick<TaskData, "letters">) => {
  // the former answer is about another task
  const letters = isPlaceholderData ? [] : (data?.items ?? [])
  const replayed = letters.flatMap((letter) =>
    letter.replayed_at === null ? [] : [{ letter, at: letter.replayed_at }]
  )
  const hasMore = data?.next_cursor != null
  if (replayed.length === 0) return null
  return (
    <ul className={styles.replays} aria-label="Replays">
      {replayed.slice(0, mostReplays).map(({ at, letter }) => (
        <li key={letter.dlq_id}>
          <LetterWord letter={letter} />
          its{" "}
          <Link to="/dead-letters/$dlqId" params={{ dlqId: letter.dlq_id }}>
            dead letter
          </Link>{" "}
          was replayed <When at={at} />
        </li>
      ))}
      {(replayed.length > mostReplays || hasMore) && (
        <li>
          and {hasMore ? "at least " : ""}
          {replayed.length - Math.min(mostReplays, replayed.length)} more
        </li>
      )}
    </ul>
  )
}
