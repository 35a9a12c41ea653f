import { Duration, Effect } from "effect"
import type { Failure, Redelivered } from "./Redelivery.ts"

/** A delivery on which work failed. */
export interface Failed {
  readonly consumer: string
  readonly queue: string
  /** As far as it could be read. */
  readonly taskId: string | null
  readonly failure: Pick<Failure, "exceptionType" | "text" | "stack"> & { readonly reason: string }
  /** Which retry failed; 0 is the first attempt. */
  readonly attempt: number
  readonly maxRetries: number
  /** Where it was brought. `undefined`: it is rejected, because the consumer has no retry policy. */
  readonly went: Redelivered | undefined
}

/** One line for each attempt that failed: why it failed, and what follows. A warning where another attempt follows. */
export const log = ({ attempt, consumer, failure, maxRetries, queue, taskId, went }: Failed): Effect.Effect<void> => {
  const { exceptionType, reason, stack, text } = failure
  const task = taskId === null ? "A message" : `Task ${taskId}`
  const sentence = `${task} failed on ${queue}, in attempt ${attempt + 1} of ${maxRetries + 1}: ${whyOf(failure)}. ${followsOf(went)}`
  const fields = {
    consumer,
    queue,
    task_id: taskId,
    retry_attempt: attempt,
    max_retries: maxRetries,
    reason,
    exception_type: exceptionType,
    exception_message: text,
    exception_stack: stack,
    sent_to: went?.queue
  }
  return went?._tag === "Retry" ? Effect.logWarning(sentence, fields) : Effect.logError(sentence, fields)
}

/** The sentence needs no more; the fields have all of it. */
const longestText = 300

const whyOf = ({ exceptionType, reason, text }: Failed["failure"]): string => {
  const name = exceptionType ?? reason
  const message = text.trim().slice(0, longestText).replace(/\.$/, "")
  return message === "" ? name : `${name}: ${message}`
}

const followsOf = (went: Redelivered | undefined): string => {
  if (went === undefined) return "It is rejected, as its consumer has no retry policy."
  return went._tag === "Retry"
    ? `It is tried again in ${Duration.format(Duration.millis(went.delayMs))}.`
    : `It is in the dead-letter queue ${went.queue}.`
}
