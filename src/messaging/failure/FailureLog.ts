import { Duration, Effect } from "effect"
import type { DeliveryFailure } from "../retry/HandlerFailure.ts"
import * as RetryHeaders from "../retry/RetryHeaders.ts"
import type { FailedDelivery } from "./FailedDelivery.ts"
import type { RedeliveryResult } from "./Redelivery.ts"

/** Logs a warning if a retry of the delivery follows, else an error. A rejected delivery has no `result`. */
export const log = (
  consumer: { readonly name: string; readonly queue: string },
  { delivery, failure, fields: { task_id } }: FailedDelivery,
  result?: RedeliveryResult
): Effect.Effect<void> => {
  const { exceptionType, reason, stack, text } = failure
  const { name, queue } = consumer
  const attempt = RetryHeaders.attemptOf(delivery.properties.headers ?? {})
  const maxRetries = result?.maxRetries ?? 0
  const task = task_id === null ? "A message" : `Task ${task_id}`
  const sentence = `${task} failed on ${queue}, in attempt ${attempt + 1} of ${maxRetries + 1}: ${causeOf(failure)}. ${consequenceOf(result)}`
  const fields = {
    consumer: name,
    queue,
    task_id,
    retry_attempt: attempt,
    max_retries: maxRetries,
    reason,
    exception_type: exceptionType,
    exception_message: text,
    exception_stack: stack,
    sent_to: result?.queue
  }
  return result?._tag === "Retry" ? Effect.logWarning(sentence, fields) : Effect.logError(sentence, fields)
}

const longestText = 300

const causeOf = ({ exceptionType, reason, text }: DeliveryFailure): string => {
  const name = exceptionType ?? reason
  const message = text.trim().slice(0, longestText).replace(/\.$/, "")
  return message === "" ? name : `${name}: ${message}`
}

const consequenceOf = (result: RedeliveryResult | undefined): string => {
  if (result === undefined) return "It is rejected and not retried, because its consumer has no retry policy."
  return result._tag === "Retry"
    ? `The next attempt follows in ${Duration.format(Duration.millis(result.delayMs))}.`
    : `It is not retried again and is in the dead-letter queue ${result.queue}.`
}
