import { Effect } from "effect"
import type { Broker, BrokerError } from "../../services/Broker.ts"
import type { QueueGroup } from "../control/ControlRecords.ts"
import type { SettingsError, TopologyError } from "../envelope/Errors.ts"
import * as Timestamp from "../envelope/Timestamp.ts"
import { CurrentDelivery } from "../observe/CurrentDelivery.ts"
import type { Observe } from "../observe/ObservationSink.ts"
import type { BrokerClient } from "../publish/BrokerClient.ts"
import * as TaskStatuses from "../publish/TaskStatuses.ts"
import type { RetryPolicy } from "../topology/RetryPolicy.ts"
import { RetryStatusConfig } from "../topology/StatusSettings.ts"
import { type DeadLetterSink, DefaultDeadLetterSink } from "./DeadLetter.ts"
import * as DeadLetterRecording from "./DeadLetterRecording.ts"
import { ExceptionDetails, redacted } from "./ExceptionDetails.ts"
import type { DeliveryFields, FailedDelivery, FailureStatus } from "./FailedDelivery.ts"
import * as FailureLog from "./FailureLog.ts"
import * as Redelivery from "./Redelivery.ts"

export interface FailureOptions {
  /**
   * Defines the retries of a failed message. After the last retry, the message is published to the dead-letter queue
   * `<queue>.dlq`. Without a policy, the consumer rejects failed messages. The broker moves a rejected message to the
   * dead-letter exchange of the queue, or drops it. Default: none.
   */
  readonly retryPolicy?: RetryPolicy | undefined
  /**
   * Stores a record of each message in the dead-letter queue. A failure of the sink is logged and has no other effect.
   * Requires a retry policy. Default: `DefaultDeadLetterSink`.
   */
  readonly dlqStore?: DeadLetterSink | undefined
  /** Publishes statuses about retries and dead letters. Default: disabled, as in `new RetryStatusConfig()`. */
  readonly retryStatuses?: RetryStatusConfig | undefined
}

interface FailureReports<Fields extends DeliveryFields> {
  readonly failed: (failed: FailedDelivery<Fields>, exception: ExceptionFields) => void
  readonly redelivered: (
    tag: Redelivery.RedeliveryResult["_tag"],
    redelivery: Redelivery.RedeliveryFields,
    fields: Fields
  ) => void
  /** Called with the time at which a scheduled retry is due, in milliseconds since 1970. */
  readonly retryScheduled?: ((dueMs: number) => void) | undefined
  /** Whether `redelivered` is called before or after the failure is logged. A sink that also logs shows the order. */
  readonly order: "observed first" | "logged first"
}

interface ExceptionFields {
  readonly exception_type: string
  readonly exception_message: string
  readonly requeue: false
}

interface FailureVerdict {
  readonly settle: "ack" | "reject"
  readonly failure: string
}

interface FailurePath<Fields extends DeliveryFields> {
  readonly prepare: Effect.Effect<void, TopologyError | BrokerError>
  readonly group: () => QueueGroup
  /** Publishes the message to its next queue and returns `ack`. Without a retry policy, returns `reject`. */
  readonly fail: (failed: FailedDelivery<Fields>) => Effect.Effect<FailureVerdict, Redelivery.RedeliveryError>
}

/** Creates the failure handling of a consumer. Fails if the name of a retry queue would be too long for AMQP. */
export const make = Effect.fnUntraced(function* <Fields extends DeliveryFields>(
  broker: Broker["Service"],
  consumer: { readonly client: BrokerClient["Service"]; readonly name: string; readonly queue: string },
  { dlqStore, retryPolicy, retryStatuses = new RetryStatusConfig() }: FailureOptions,
  observe: Observe,
  reports: FailureReports<Fields>
): Effect.fn.Return<FailurePath<Fields>, SettingsError> {
  const { client, name, queue } = consumer
  const redelivery = retryPolicy && (yield* Effect.fromResult(Redelivery.make(broker, client, queue, retryPolicy)))
  const redact = yield* ExceptionDetails
  const record = DeadLetterRecording.make(name, dlqStore ?? (yield* DefaultDeadLetterSink), observe)

  const fail = Effect.fnUntraced(function* (
    original: FailedDelivery<Fields>
  ): Effect.fn.Return<FailureVerdict, Redelivery.RedeliveryError> {
    const failure = redacted(redact, original.failure)
    const failed = { ...original, failure }
    const { delivery, fields, status } = failed
    const { exceptionType, reason, text } = failure
    const kind = exceptionType ?? reason
    reports.failed(failed, { exception_type: kind, exception_message: text, requeue: false })
    if (redelivery === undefined) {
      yield* FailureLog.log(consumer, failed)
      if (status?.ended !== undefined) yield* withErrorClass(kind, status.ended(text))
      return { settle: "reject", failure: kind }
    }
    const result = yield* redelivery.redeliver(delivery, failure)
    if (result._tag === "Retry") reports.retryScheduled?.(Timestamp.toMillis(result.at) + result.delayMs)
    const observed = Effect.sync(() =>
      reports.redelivered(result._tag, Redelivery.fieldsOf(name, fields.task_id, result), fields)
    )
    const logged = FailureLog.log(consumer, failed, result)
    yield* reports.order === "observed first" ? Effect.andThen(observed, logged) : Effect.andThen(logged, observed)
    yield* record(failed, result)
    if (status !== undefined) yield* withErrorClass(kind, publishFailureStatus(status, result, text))
    return { settle: "ack", failure: kind }
  })

  const publishFailureStatus = (
    { about, ended, meta }: FailureStatus,
    { _tag, attempt, maxRetries }: Redelivery.RedeliveryResult,
    text: string
  ): Effect.Effect<unknown> => {
    const isDead = _tag === "DeadLetter"
    if (!retryStatuses.enabled) return isDead && ended !== undefined ? ended(text) : Effect.void
    const content = isDead
      ? retryStatuses.deadLettered(attempt, maxRetries, text)
      : retryStatuses.retrying(attempt, maxRetries, text)
    const status = { ...content, meta: { ...content.meta, ...meta }, failed: isDead }
    return TaskStatuses.publish(client, about, status, isDead)
  }

  const group = () => {
    const queues = redelivery?.queues()
    return {
      queue,
      retry_queues: queues?.policy.delays.map(queues.retryQueueOf) ?? [],
      dead_letter_queue: queues?.deadLetterQueue ?? null
    }
  }

  return { prepare: redelivery?.prepare ?? Effect.void, group, fail }
})

/** Makes a status name the exception of the attempt that it reports. */
const withErrorClass = <A, E, R>(errorClass: string, published: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(CurrentDelivery, (current) =>
    current === undefined ? published : Effect.provideService(published, CurrentDelivery, { ...current, errorClass })
  )
