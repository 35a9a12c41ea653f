import { Duration, Effect } from "effect"
import * as Observation from "../observe/Observation.ts"
import type { Observe } from "../observe/ObservationSink.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import { type DeadLetterSink, recordOf } from "./DeadLetter.ts"
import type { FailedDelivery } from "./FailedDelivery.ts"
import { fieldsOf, type Redelivered } from "./Redelivery.ts"

export type Recording = (failed: FailedDelivery, went: Redelivered) => Effect.Effect<void>

/** The message is safe already, and waits for nothing but this. */
const within = Duration.seconds(5)

/**
 * Tells the sink of a dead letter that is safe in its queue. Nothing depends on it: what keeps the sink from recording is
 * observed and logged.
 */
export const make = (consumerName: string, sink: DeadLetterSink | undefined, observe: Observe): Recording => {
  if (sink === undefined) return () => Effect.void

  const unrecorded = (
    taskId: string | null,
    went: Redelivered,
    { exceptionType, text }: HandlerFailure.HandlerFailure
  ) => {
    observe((at) =>
      Observation.of("ConsumerDLQRecordPersistFailed", at, {
        ...fieldsOf(consumerName, taskId, went),
        exception_type: exceptionType,
        exception_message: text
      })
    )
    return Effect.logWarning(
      `A dead letter of ${went.sourceQueue} is in ${went.queue}, and not recorded`,
      exceptionType
    )
  }

  return ({ delivery, failure, fields: { task_id: taskId } }, went) => {
    if (went._tag === "Retry") return Effect.void
    const { exceptionType, stack: exceptionStack, text: exceptionMessage } = failure
    const record = Effect.suspend(() =>
      sink.record(recordOf({ ...went, delivery, taskId, exceptionType, exceptionMessage, exceptionStack }))
    )
    return record.pipe(
      Effect.timeoutOrElse({
        duration: within,
        orElse: () => Effect.fail(new Error(`It took longer than ${Duration.format(within)}.`))
      }),
      Effect.catchCause((cause) => unrecorded(taskId, went, HandlerFailure.ofCause(cause))),
      Effect.asVoid
    )
  }
}
