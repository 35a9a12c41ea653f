import { Duration, Effect } from "effect"
import * as Observation from "../observe/Observation.ts"
import type { Observe } from "../observe/ObservationSink.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import { type DeadLetterSink, recordOf } from "./DeadLetter.ts"
import type { FailedDelivery } from "./FailedDelivery.ts"
import { fieldsOf, type RedeliveryResult } from "./Redelivery.ts"

export type RecordDeadLetter = (failed: FailedDelivery, result: RedeliveryResult) => Effect.Effect<void>

/** The message is safe already, and waits for nothing but this. */
const recordTimeout = Duration.seconds(5)

/**
 * Tells the sink of a dead letter that is safe in its queue. Nothing depends on it: what keeps the sink from recording is
 * observed and logged.
 */
export const make = (consumerName: string, sink: DeadLetterSink | undefined, observe: Observe): RecordDeadLetter => {
  if (sink === undefined) return () => Effect.void

  const reportUnrecorded = (
    taskId: string | null,
    result: RedeliveryResult,
    { exceptionType, text }: HandlerFailure.HandlerFailure
  ) => {
    observe((at) =>
      Observation.of("ConsumerDLQRecordPersistFailed", at, {
        ...fieldsOf(consumerName, taskId, result),
        exception_type: exceptionType,
        exception_message: text
      })
    )
    return Effect.logWarning(
      `A dead letter of ${result.sourceQueue} is in ${result.queue}, and not recorded`,
      exceptionType
    )
  }

  return ({ delivery, failure, fields: { task_id: taskId } }, result) => {
    if (result._tag === "Retry") return Effect.void
    const { exceptionType, stack: exceptionStack, text: exceptionMessage } = failure
    const record = Effect.suspend(() =>
      sink.record(recordOf({ ...result, delivery, taskId, exceptionType, exceptionMessage, exceptionStack }))
    )
    return record.pipe(
      Effect.timeoutOrElse({
        duration: recordTimeout,
        orElse: () => Effect.fail(new Error(`It took longer than ${Duration.format(recordTimeout)}.`))
      }),
      Effect.catchCause((cause) => reportUnrecorded(taskId, result, HandlerFailure.ofCause(cause))),
      Effect.asVoid
    )
  }
}
