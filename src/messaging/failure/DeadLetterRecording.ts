import { Duration, Effect } from "effect"
import * as Observation from "../observe/Observation.ts"
import type { Observe } from "../observe/ObservationSink.ts"
import * as HandlerFailure from "../retry/HandlerFailure.ts"
import { type DeadLetterSink, recordOf } from "./DeadLetter.ts"
import type { FailedDelivery } from "./FailedDelivery.ts"
import { fieldsOf, type RedeliveryResult } from "./Redelivery.ts"

type RecordDeadLetter = (failed: FailedDelivery, result: RedeliveryResult) => Effect.Effect<void>

/** A delivery is acknowledged after its record is written. The timeout limits the delay by a slow sink. */
const recordTimeout = Duration.seconds(5)

/** Records dead letters in the sink. A failure of the sink is observed and logged, and has no other effect. */
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
      `A failed message of ${result.sourceQueue} is in the dead-letter queue ${result.queue}, but its record was not stored. To list or replay the message, index the queue (POST /dlq/queues/index)`,
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
        orElse: () =>
          Effect.fail(new Error(`The store of dead letters did not respond within ${Duration.format(recordTimeout)}.`))
      }),
      Effect.catchCause((cause) => reportUnrecorded(taskId, result, HandlerFailure.ofCause(cause))),
      Effect.asVoid
    )
  }
}
