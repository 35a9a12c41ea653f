import { Modal } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import type { DeadLetterSummary, RepairedMany } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { type Meaning, StatusWord } from "../../../shared/words/StatusWord.tsx"
import { letterName } from "../letterName.ts"
import styles from "../letters/DeadLetters.module.css"

interface Props {
  readonly letters: ReadonlyArray<DeadLetterSummary>
  readonly repaired: RepairedMany
  readonly onClose: () => void
}

/** Lists the result of each letter after a request that did not take all of them back. */
export const NotTakenBack = ({ letters, onClose, repaired }: Props) => {
  const resultOf = resultsOf(repaired)
  return (
    <Modal opened onClose={onClose} title="Not all letters were taken back" size="lg">
      <p>
        {repaired.changed} of {letters.length} were taken back. The others are still selected.
      </p>
      <ul className={styles.lane} aria-label="Results">
        {letters.map(({ dlq_id, task_id }) => {
          const { detail, meaning, word } = resultOf(dlq_id)
          return (
            <li key={dlq_id}>
              <span>
                <StatusWord meaning={meaning}>{word}</StatusWord>{" "}
                <Link to="/dead-letters/$dlqId" params={{ dlqId: dlq_id }}>
                  <ForeignText>{letterName({ dlq_id, task_id })}</ForeignText>
                </Link>
              </span>
              {detail !== undefined && <ForeignText>{detail}</ForeignText>}
            </li>
          )
        })}
      </ul>
    </Modal>
  )
}

interface Result {
  readonly meaning: Meaning
  readonly word: string
  readonly detail?: string | undefined
}

/** A letter that is in no list of the answer was not reached before the server stopped. */
const resultsOf = ({ ids, problem, refused }: RepairedMany): ((dlqId: string) => Result) => {
  const back = new Set(ids)
  const reasons = new Map(refused.map(({ detail, dlq_id }) => [dlq_id, detail]))
  return (dlqId) => {
    if (back.has(dlqId)) return { meaning: "good", word: "taken back" }
    const reason = reasons.get(dlqId)
    return reason === undefined
      ? { meaning: "warning", word: "not reached", detail: problem ?? undefined }
      : { meaning: "bad", word: "refused", detail: reason }
  }
}
