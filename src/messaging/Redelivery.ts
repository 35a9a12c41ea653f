import { Clock, Effect, Random, Result } from "effect"
import type { Broker, BrokerError, Delivery, Fields } from "../services/Broker.ts"
import type { BrokerClient } from "./BrokerClient.ts"
import type { SettingsError } from "./Errors.ts"
import * as Publications from "./Publications.ts"
import type { Unconfirmed } from "./PublishOutcome.ts"
import { decide, type RetryDecision } from "./RetryDecision.ts"
import * as RetryHeaders from "./RetryHeaders.ts"
import type { RetryPolicy } from "./RetryPolicy.ts"
import * as RetryQueues from "./RetryQueues.ts"

/** Why a delivery is not done with. */
export interface Failure {
  readonly reason: RetryHeaders.FailureReason
  /** `null`: no exception was the cause. */
  readonly exceptionType: string | null
  /** `false`: trying again is pointless. */
  readonly retryable: boolean
}

/** Where a failed delivery went. */
export type Redelivered = RetryDecision & {
  readonly queue: string
  /** As published. */
  readonly headers: Fields
}

/** Brings failed deliveries of one queue to its retry queues, and at last to its dead-letter queue. */
export interface Redelivery {
  readonly policy: RetryPolicy
  readonly sourceQueue: string
  /** Where the shortest of its delays is waited for; none where the policy allows no retry. */
  readonly retryQueue: string | null
  /** Declares those queues. */
  readonly prepare: Effect.Effect<void, BrokerError>
  /**
   * Succeeds when the message is safe in one of them, and the delivery may be acknowledged. `headers`: beside those that
   * it came with.
   */
  readonly redeliver: (
    delivery: Delivery,
    failure: Failure,
    headers?: Fields
  ) => Effect.Effect<Redelivered, Unconfirmed | BrokerError>
}

/** Fails where the names of the queues would be too long. */
export const make = (
  broker: Broker["Service"],
  client: BrokerClient["Service"],
  sourceQueue: string,
  policy: RetryPolicy
): Result.Result<Redelivery, SettingsError> =>
  Result.map(RetryQueues.of(sourceQueue, policy), ({ deadLetterQueue, declarations, retryQueueOf }) => {
    let declaredAt = Number.NEGATIVE_INFINITY
    const prepare = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.andThen(
        broker.declare(declarations),
        Effect.sync(() => {
          declaredAt = now
        })
      )
    )
    // or the broker would drop the queue in the end, and the messages with it
    const declaredLately = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      now - declaredAt < RetryQueues.redeclareEveryMs ? Effect.void : prepare
    )

    const redeliver = Effect.fnUntraced(function* (delivery: Delivery, failure: Failure, headers: Fields = {}) {
      const { properties } = delivery
      const attempt = RetryHeaders.attemptOf(properties.headers ?? {})
      const decision = decide(policy, { ...failure, attempt }, yield* Random.next)
      const queue = decision._tag === "Retry" ? retryQueueOf(decision.delayMs) : deadLetterQueue
      const published = RetryHeaders.of(
        { ...properties.headers, ...headers },
        {
          attempt: decision.attempt,
          maxRetries: policy.maxRetries,
          sourceQueue,
          reason: decision.reason,
          exceptionType: failure.exceptionType
        }
      )
      const publish = client.publish(
        Publications.raw(queue, delivery.content, {
          correlationId: properties.correlationId,
          contentType: properties.contentType,
          priority: properties.priority,
          headers: published
        })
      )
      yield* declaredLately
      // somebody may have deleted the queue
      yield* Effect.catchTag(publish, "Unroutable", () => Effect.andThen(prepare, publish))
      return { ...decision, queue, headers: published }
    })

    const [shortest] = policy.delays
    const retryQueue = shortest === undefined ? null : retryQueueOf(shortest)
    return { policy, sourceQueue, retryQueue, prepare, redeliver }
  })
