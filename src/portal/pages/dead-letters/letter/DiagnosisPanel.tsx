import { Skeleton } from "@mantine/core"
import type { UseQueryResult } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ApiError } from "../../../api/ApiError.ts"
import { useTasksApi } from "../../../api/queries.ts"
import type { Letter } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { LetterWord } from "../../../shared/tasks/LetterWord.tsx"
import { type Fact, Facts } from "../../../shared/words/Facts.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { ExceptionMessage } from "../ExceptionMessage.tsx"
import { groupSearch } from "../groups/groupSearch.ts"
import styles from "./Letter.module.css"
import { PayloadMisfit } from "./PayloadFitNote.tsx"

/** Why the message has failed, and what became of it since. */
export const DiagnosisPanel = ({ letter }: { readonly letter: UseQueryResult<Letter, ApiError> }) => {
  const { data } = letter
  return (
    <Panel query={letter} height={170}>
      {data !== undefined && (
        <div className={styles.diagnosis}>
          <Outcome letter={data} />
          <Failure letter={data} />
          <PayloadMisfit fit={data.payload_fit} />
          {(data.state === "replayed" ? [] : data.diagnosis.replay.warnings).map((warning) => (
            <p key={warning}>
              <StatusWord meaning="warning">before a replay</StatusWord> {warning}
            </p>
          ))}
          <Facts facts={factsOf(data)} />
        </div>
      )}
    </Panel>
  )
}

/** Says why the message has failed. A new edit has not failed yet: it shows the failure of the message before it. */
const Failure = ({ letter }: { readonly letter: Letter }) => {
  const { dead_lettered_at, diagnosis, edited_from, exception_message, max_retries, reason, retry_attempt } = letter
  const { exception_type } = diagnosis.failure
  return (
    <>
      <p>
        {failedWords(letter)} <ForeignText>{letter.source_queue_name}</ForeignText>{" "}
        {exception_type !== null && (
          <>
            with{" "}
            <strong>
              <ForeignText>{exception_type}</ForeignText>
            </strong>{" "}
          </>
        )}
        for{" "}
        <code>
          <ForeignText>{reason}</ForeignText>
        </code>
        , in attempt {retry_attempt + 1} of {max_retries + 1}, <When at={dead_lettered_at} />.
        {edited_from != null && (
          <>
            {" "}
            <Link to="/dead-letters/$dlqId" params={{ dlqId: edited_from }}>
              The message before the edit
            </Link>
          </>
        )}
      </p>
      {exception_message && <ExceptionMessage>{exception_message}</ExceptionMessage>}
    </>
  )
}

const failedWords = ({ edited_from, replay_outcome, state }: Letter): string =>
  edited_from != null
    ? "It is an edit of a message that failed on"
    : state === "replayed" && replay_outcome?.outcome === "handled"
      ? "Before its replay, it failed on"
      : "It failed on"

/** Says why the replayed message has failed, as its own dead letter tells it. */
const FailedAgain = ({ dlqId }: { readonly dlqId: string }) => {
  const { data, isPending } = useTasksApi<Letter>(taskPath`/dlq/messages/${dlqId}`)
  return (
    <>
      <p>
        <Link to="/dead-letters/$dlqId" params={{ dlqId }}>
          The dead letter that it became
        </Link>
      </p>
      {isPending ? (
        <Skeleton height={36} />
      ) : (
        data?.exception_message && <ExceptionMessage>{data.exception_message}</ExceptionMessage>
      )}
    </>
  )
}

/** What is proved of a replay or an edit, and where it goes on. */
const Outcome = ({ letter }: { readonly letter: Letter }) => {
  const { archive, failed_again_as, replaced_by } = {
    failed_again_as: letter.replay_outcome?.failed_again_as,
    ...letter
  }
  return (
    <>
      {letter.state === "replayed" && (
        <p>
          <LetterWord letter={letter} /> It was replayed to <ForeignText>{letter.replay_target_queue_name}</ForeignText>{" "}
          <When at={letter.replayed_at} />
          <OutcomeKnown letter={letter} />.
        </p>
      )}
      {failed_again_as != null && <FailedAgain dlqId={failed_again_as} />}
      {replaced_by != null && (
        <p>
          {letter.replacement != null && <LetterWord letter={letter.replacement} />}{" "}
          <Link to="/dead-letters/$dlqId" params={{ dlqId: replaced_by }}>
            The edited message
          </Link>{" "}
          took its place <When at={letter.replaced_at} />.
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

const OutcomeKnown = ({ letter: { replay_outcome } }: { readonly letter: Letter }) =>
  replay_outcome?.known_at == null ? null : (
    <>
      {replay_outcome.outcome === "handled" ? ", and was handled " : ", and failed again "}
      <When at={replay_outcome.known_at} />
    </>
  )

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
