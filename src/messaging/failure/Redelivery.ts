import { Clock, Effect, Random, Result, Schedule } from "effect"
import type { Broker, BrokerError, Delivery, Fields } from "../../services/Broker.ts"
import { fitsShortString } from "../envelope/Envelope.ts"
import type { SettingsError, TopologyError } from "../envelope/Errors.ts"
import { ofMillis, type Timestamp } from "../envelope/Timestamp.ts"
import type { BrokerClient } from "../publish/BrokerClient.ts"
import * as Publications from "../publish/Publications.ts"
import type { UnconfirmedPublish } from "../publish/PublishOutcome.ts"
import type { DeliveryFailure } from "../retry/HandlerFailure.ts"
import { decide, type RetryDecision } from "../retry/RetryDecision.ts"
import * as RetryHeaders from "../retry/RetryHeaders.ts"
import * as RetryQueues from "../retry/RetryQueues.ts"
import type { RetryPolicy } from "../topology/RetryPolicy.ts"

export type RedeliveryResult = RetryDecision & {
  readonly queue: string
  readonly sourceQueue: string
  readonly maxRetries: number
  readonly retryQueue: string | null
  readonly at: Timestamp
  readonly headers: Fields
}

export const fieldsOf = (consumerName: string, taskId: string | null, result: RedeliveryResult) => ({
  consumer_name: consumerName,
  task_id: taskId,
  queue_name: result.queue,
  source_queue_name: result.sourceQueue,
  retry_attempt: result.attempt,
  max_retries: result.maxRetries,
  reason: result.reason
})
export type RedeliveryFields = ReturnType<typeof fieldsOf>

export const redeliveryEvents = { Retry: "ConsumerRetryScheduled", DeadLetter: "ConsumerDeadLetterPublished" } as const

interface Redelivery {
  readonly prepare: Effect.Effect<void, TopologyError | BrokerError>
  /** The queues that this broker supports, once `prepare` has run. */
  readonly queues: () => RetryQueues.RetryQueues
  /**
   * Publishes a failed message to a retry queue or the dead-letter queue. Succeeds after the broker has stored the
   * message. If the broker rejects the message, publishing is retried for a minute, because a redelivery would run the
   * handler again. Headers that are too long for AMQP are dropped.
   */
  readonly redeliver: (delivery: Delivery, failure: DeliveryFailure) => Effect.Effect<RedeliveryResult, RedeliveryError>
}

/** The broker may not have stored the retry or dead letter. The message therefore returns to its source queue. */
export type RedeliveryError = UnconfirmedPublish | TopologyError | BrokerError

export const make = (
  broker: Broker["Service"],
  client: BrokerClient["Service"],
  sourceQueue: string,
  policy: RetryPolicy
): Result.Result<Redelivery, SettingsError> =>
  Result.map(RetryQueues.of(sourceQueue, policy), (requested) => {
    let queues = requested
    let declaredAt = Number.NEGATIVE_INFINITY
    const prepare = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      queues = yield* RetryQueues.declare(broker, queues)
      declaredAt = now
    })
    // The broker deletes classic retry queues with their messages if no worker redeclares these queues in time.
    const redeclareIfStale = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      now - declaredAt < RetryQueues.redeclareEveryMs ? Effect.void : prepare
    )

    const redeliver = Effect.fnUntraced(function* ({ content, properties }: Delivery, failure: DeliveryFailure) {
      const { contentType, correlationId, headers = {}, priority } = properties
      const { maxRetries } = policy
      const attempt = RetryHeaders.attemptOf(headers)
      const decision = decide(policy, { ...failure, attempt }, yield* Random.next)
      const at = ofMillis(yield* Clock.currentTimeMillis)
      const failureHeaders = {
        attempt: decision.attempt,
        maxRetries,
        sourceQueue,
        reason: decision.reason,
        exceptionType: failure.exceptionType,
        deadLetteredAt: decision._tag === "DeadLetter" ? at : undefined
      }
      const queueOf = () => (decision._tag === "Retry" ? queues.retryQueueOf(decision.delayMs) : queues.deadLetterQueue)
      const publishWith = (given: Publications.RawOptions & { readonly headers: Fields }) => {
        const publish = Effect.suspend(() => client.publish(Publications.raw(queueOf(), content, given)))
        const stored = Effect.catchTag(publish, "Unroutable", () => Effect.andThen(prepare, publish))
        return Effect.as(retryUntilStored(Effect.andThen(redeclareIfStale, stored), sourceQueue), given.headers)
      }
      const described = Publications.descriptiveProperties(properties)
      const completeOptions = {
        ...described,
        correlationId,
        contentType,
        priority,
        headers: RetryHeaders.of(headers, failureHeaders)
      }
      const published = yield* Effect.catchIf(publishWith(completeOptions), isInvalidMessage, () =>
        publishWith({
          correlationId: shortTextOnly(correlationId),
          contentType: shortTextOnly(contentType),
          contentEncoding: shortTextOnly(described.contentEncoding),
          replyTo: shortTextOnly(described.replyTo),
          messageId: shortTextOnly(described.messageId),
          timestamp: described.timestamp,
          type: shortTextOnly(described.type),
          appId: shortTextOnly(described.appId),
          priority,
          headers: RetryHeaders.of(RetryHeaders.shortened(RetryHeaders.withoutBrokerHeaders(headers)), failureHeaders)
        })
      )
      const [shortest] = policy.delays
      const retryQueue = shortest === undefined ? null : queues.retryQueueOf(shortest)
      return { ...decision, at, queue: queueOf(), sourceQueue, maxRetries, retryQueue, headers: published }
    })

    return { prepare, queues: () => queues, redeliver }
  })

/** Retries a publish while the broker rejects it. A retry after an unknown outcome could duplicate the message. */
const retryUntilStored = <A>(
  stored: Effect.Effect<A, RedeliveryError>,
  sourceQueue: string
): Effect.Effect<A, RedeliveryError> => {
  const warnOnce = Effect.cached(
    Effect.logWarning(
      `The broker does not accept a failed message of ${sourceQueue} for its retry or dead-letter queue. Publishing is retried for up to a minute, then the message returns to ${sourceQueue}`
    )
  )
  return Effect.flatMap(warnOnce, (warn) =>
    Effect.retry(
      Effect.tapError(stored, (error) => (isTransient(error) ? warn : Effect.void)),
      { while: isTransient, schedule: holdSchedule }
    )
  )
}

/** Returns whether headers or properties are too long for AMQP. The long ones are then dropped. */
const isInvalidMessage = (error: RedeliveryError): boolean =>
  error._tag === "PublishRefused" && error.reason === "invalid"

/** Drops a property that is too long. Text from another client may become longer when invalid UTF-8 is decoded. */
const shortTextOnly = (text: string | undefined): string | undefined =>
  text !== undefined && fitsShortString(text) ? text : undefined

const isTransient = (error: RedeliveryError): boolean => {
  switch (error._tag) {
    case "Unroutable":
      return true
    case "PublishRefused":
      return error.reason === "nacked" || error.reason === "blocked" || error.reason === "unreachable"
    case "BrokerError":
      return ["unreachable", "lost", "timeout", "not_found", "down"].includes(error.reason)
    default:
      return false
  }
}

/** Retries for a minute, well below the broker's default consumer timeout of 30 minutes. */
export const holdSchedule = Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("5 seconds")]).pipe(
  Schedule.jittered,
  Schedule.upTo({ duration: "1 minute" })
)
