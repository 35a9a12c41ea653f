import { Duration, Effect } from "effect"
import type { Delivery } from "../../services/Broker.ts"
import * as Observation from "../observe/Observation.ts"
import type { Observe } from "../observe/ObservationSink.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import { type DeadLetterSink, recordOf } from "./DeadLetter.ts"
import type { Failure, Redelivered, Redelivery } from "./Redelivery.ts"

/** A delivery that failed, and was brought somewhere. */
export interface Failed {
  readonly redelivery: Redelivery
  readonly delivery: Delivery
  readonly failure: Failure
  readonly went: Redelivered
  /** As far as it could be read. */
  readonly taskId: string | null
}

export type Recording = (failed: Failed) => Effect.Effect<void>

/** The message is safe already, and waits for nothing but this. */
const within = Duration.seconds(5)

/**
 * Tells the sink of a dead letter that is safe in its queue. Nothing depends on it: what keeps the sink from recording is
 * observed and logged.
 */
export const make = (consumerName: string, sink: DeadLetterSink | undefined, observe: Observe): Recording => {
  if (sink === undefined) return () => Effect.void

  const unrecorded = ({ redelivery, taskId, went }: Failed, { exceptionType, text }: HandlerFailure.HandlerFailure) => {
    observe((at) =>
      Observation.of("ConsumerDLQRecordPersistFailed", at, {
        consumer_name: consumerName,
        task_id: taskId,
        queue_name: went.queue,
        source_queue_name: redelivery.sourceQueue,
        retry_attempt: went.attempt,
        max_retries: redelivery.policy.maxRetries,
        reason: went.reason,
        exception_type: exceptionType,
        exception_message: text
      })
    )
    return Effect.logWarning(
      `A dead letter of ${redelivery.sourceQueue} is in ${went.queue}, and not recorded`,
      exceptionType
    )
  }

  return (failed) => {
    const { delivery, failure, redelivery, taskId, went } = failed
    if (went._tag === "Retry") return Effect.void
    const record = Effect.suspend(() =>
      sink.record(
        recordOf({
          delivery,
          queue: went.queue,
          sourceQueue: redelivery.sourceQueue,
          retryQueue: redelivery.retryQueue,
          taskId,
          reason: went.reason,
          exceptionType: failure.exceptionType,
          exceptionMessage: failure.text,
          exceptionStack: failure.stack,
          attempt: went.attempt,
          maxRetries: redelivery.policy.maxRetries,
          headers: went.headers,
          at: went.at
        })
      )
    )
    return record.pipe(
      Effect.timeoutOrElse({
        duration: within,
        orElse: () => Effect.fail(new Error(`It took longer than ${Duration.format(within)}.`))
      }),
      Effect.catchCause((cause) => unrecorded(failed, HandlerFailure.ofCause(cause))),
      Effect.asVoid
    )
  }
}
