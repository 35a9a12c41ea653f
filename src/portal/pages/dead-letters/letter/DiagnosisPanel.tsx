import type { UseQueryResult } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ApiError } from "../../../api/ApiError.ts"
import type { Letter } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { LetterWord } from "../../../shared/tasks/LetterWord.tsx"
import { type Fact, Facts } from "../../../shared/words/Facts.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { groupSearch } from "../groups/groupSearch.ts"
import styles from "./Letter.module.css"

/** Why the message has failed, and what became of it since. */
export const DiagnosisPanel = ({ letter }: { readonly letter: UseQueryResult<Letter, ApiError> }) => {
  const { data } = letter
  return (
    <Panel query={letter} height={170}>
      {data !== undefined && (
        <div className={styles.diagnosis}>
          <p>
            It failed on <ForeignText>{data.source_queue_name}</ForeignText>{" "}
            {data.diagnosis.failure.exception_type === null ? (
              "for "
            ) : (
              <>
                with{" "}
                <strong>
                  <ForeignText>{data.diagnosis.failure.exception_type}</ForeignText>
                </strong>{" "}
                for{" "}
              </>
            )}
            <code>
              <ForeignText>{data.reason}</ForeignText>
            </code>
            , in attempt {data.retry_attempt + 1} of {data.max_retries + 1}, <When at={data.dead_lettered_at} />.
          </p>
          {data.exception_message && (
            <p className={styles.message}>
              <ForeignText>{data.exception_message}</ForeignText>
            </p>
          )}
          {(data.state === "replayed" ? [] : data.diagnosis.replay.warnings).map((warning) => (
            <p key={warning}>
              <StatusWord meaning="warning">before a replay</StatusWord> {warning}
            </p>
          ))}
          <Outcome letter={data} />
          <Facts facts={factsOf(data)} />
        </div>
      )}
    </Panel>
  )
}

/** What is proved of a replay or an edit, and where it goes on. */
const Outcome = ({ letter }: { readonly letter: Letter }) => {
  const { archive, edited_from, failed_again_as, replaced_by } = {
    failed_again_as: letter.replay_outcome?.failed_again_as,
    ...letter
  }
  return (
    <>
      {letter.state === "replayed" && (
        <p>
          <LetterWord letter={letter} /> Replayed <When at={letter.replayed_at} /> to{" "}
          <ForeignText>{letter.replay_target_queue_name}</ForeignText>.{" "}
          {letter.replay_outcome?.known_at != null && (
            <>
              Known <When at={letter.replay_outcome.known_at} />.{" "}
            </>
          )}
          {failed_again_as != null && (
            <Link to="/dead-letters/$dlqId" params={{ dlqId: failed_again_as }}>
              The dead letter that it became
            </Link>
          )}
        </p>
      )}
      {replaced_by != null && (
        <p>
          {letter.replacement != null && <LetterWord letter={letter.replacement} />}{" "}
          <Link to="/dead-letters/$dlqId" params={{ dlqId: replaced_by }}>
            The edited message
          </Link>{" "}
          took its place <When at={letter.replaced_at} />.
        </p>
      )}
      {edited_from != null && (
        <p>
          It is an edit of{" "}
          <Link to="/dead-letters/$dlqId" params={{ dlqId: edited_from }}>
            this dead letter
          </Link>
          .
        </p>
      )}
      {archive !== undefined && (
        <p>
          <ForeignText>{archive.by ?? "Somebody"}</ForeignText> archived it <When at={archive.archived_at} />:{" "}
          <ForeignText>{archive.reason}</ForeignText>. It is deleted <When at={archive.until} />.
        </p>
      )}
    </>
  )
}

const factsOf = (letter: Letter): ReadonlyArray<Fact> => [
  ["Dead-letter queue", <ForeignText key="queue">{letter.queue_name}</ForeignText>],
  [
    "Group",
    letter.state === "dead_lettered" ? (
      <Link key="group" to="/dead-letters/group" search={groupSearch(letter)}>
        letters with the same cause
      </Link>
    ) : null
  ],
  ["Type", letter.diagnosis.envelope.task_type ?? letter.diagnosis.envelope.workflow_stage],
  ["Correlation", <ForeignText key="correlation">{letter.correlation_id}</ForeignText>],
  ["Replays", letter.replay_count]
]
