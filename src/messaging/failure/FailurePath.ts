import { Effect } from "effect"
import type { Broker, BrokerError } from "../../services/Broker.ts"
import type { SettingsError, TopologyError } from "../envelope/Errors.ts"
import type { Observe } from "../observe/ObservationSink.ts"
import type { BrokerClient } from "../publish/BrokerClient.ts"
import * as TaskStatuses from "../publish/TaskStatuses.ts"
import type { RetryPolicy } from "../topology/RetryPolicy.ts"
import { RetryStatusConfig } from "../topology/StatusSettings.ts"
import type { DeadLetterSink } from "./DeadLetter.ts"
import * as DeadLetterRecording from "./DeadLetterRecording.ts"
import { ExceptionDetails, redacted } from "./ExceptionDetails.ts"
import type { DeliveryFields, FailedDelivery, FailureStatus } from "./FailedDelivery.ts"
import * as FailureLog from "./FailureLog.ts"
import * as Redelivery from "./Redelivery.ts"

/** What the options of every consumer say of failures. */
export interface FailureOptions {
  /**
   * How often and how late a failed message is tried again, before it goes to `<queue>.dlq`. Default: none, and a failed
   * message is rejected, to the dead-letter exchange of its queue or to nowhere.
   */
  readonly retryPolicy?: RetryPolicy | undefined
  /**
   * Records every dead letter, once it is safe in its queue. What it fails with is logged, and changes nothing. Without a
   * retry policy there are no dead letters. Default: none.
   */
  readonly dlqStore?: DeadLetterSink | undefined
  /** Statuses about retries. Default: none, as of `new RetryStatusConfig()`. */
  readonly retryStatuses?: RetryStatusConfig | undefined
}

/** What differs between consumers: what they observe of a failure, and when. */
export interface FailureReports<Fields extends DeliveryFields> {
  /** Observes the failure before the message goes anywhere. */
  readonly failed: (failed: FailedDelivery<Fields>, exception: ExceptionFields) => void
  /** Observes where the message went. */
  readonly redelivered: (
    tag: Redelivery.RedeliveryResult["_tag"],
    redelivery: Redelivery.RedeliveryFields,
    fields: Fields
  ) => void
  /** Whether `redelivered` comes before the log line, or after it: a sink that logs shows the order. */
  readonly order: "observed first" | "logged first"
}

interface ExceptionFields {
  readonly exception_type: string
  readonly exception_message: string
  readonly requeue: false
}

/** How a failed delivery is settled, and by what kind of error it failed, for its trace. */
export interface FailureVerdict {
  readonly settle: "ack" | "reject"
  readonly failure: string
}

export interface FailurePath<Fields extends DeliveryFields> {
  /** Declares the queues of retries and dead letters; nothing without a retry policy. */
  readonly prepare: Effect.Effect<void, TopologyError | BrokerError>
  /**
   * With a retry policy the delivery is acknowledged, once its message waits for a retry or is a dead letter. Otherwise it
   * is rejected.
   */
  readonly fail: (failed: FailedDelivery<Fields>) => Effect.Effect<FailureVerdict, Redelivery.RedeliveryError>
}

/** What every consumer does with a delivery on which work failed. Fails where the names of its queues would be too long. */
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
  const record = DeadLetterRecording.make(name, dlqStore, observe)

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
      if (status?.ended !== undefined) yield* status.ended(text)
      return { settle: "reject", failure: kind }
    }
    const result = yield* redelivery.redeliver(delivery, failure)
    const observed = Effect.sync(() =>
      reports.redelivered(result._tag, Redelivery.fieldsOf(name, fields.task_id, result), fields)
    )
    const logged = FailureLog.log(consumer, failed, result)
    yield* reports.order === "observed first" ? Effect.andThen(observed, logged) : Effect.andThen(logged, observed)
    yield* record(failed, result)
    if (status !== undefined) yield* publishFailureStatus(status, result, text)
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
    return TaskStatuses.publish(client, about, { ...content, meta: { ...content.meta, ...meta } }, isDead)
  }

  return { prepare: redelivery?.prepare ?? Effect.void, fail }
})
