import { Effect, Option, Result } from "effect"
import type { Broker, BrokerError, Declarations, Fields, Queue } from "../../services/Broker.ts"
import { fitsShortString, maxShortBytes } from "../envelope/Envelope.ts"
import { SettingsError, type TopologyError } from "../envelope/Errors.ts"
import * as BrokerCapabilities from "../topology/BrokerCapabilities.ts"
import type { RetryPolicy } from "../topology/RetryPolicy.ts"
import * as TopologyPlan from "../topology/TopologyPlan.ts"

/**
 * The type of a retry queue. The broker moves a message to its source queue when the delay ends. A `quorum` queue keeps
 * the message until the source queue has stored it. A `classic` queue loses the message if the broker crashes at that
 * time or if the source queue has no leader.
 */
type RetryQueueType = "quorum" | "classic"

/**
 * The retry queues and the dead-letter queue of one worker queue. All are durable. Messages are published to them
 * through the default exchange. The name of a retry queue contains its delay and type, because a queue cannot be
 * redeclared with other arguments.
 *
 * If the delays change, the queues of former delays remain until an operator deletes them. `x-expires` is unsuitable
 * for quorum queues, because redeclaring does not renew it (rabbitmq-server #5894). Expiry also drops waiting messages.
 */
export interface RetryQueues {
  readonly sourceQueue: string
  readonly policy: RetryPolicy
  readonly queueType: RetryQueueType
  readonly deadLetterQueue: string
  readonly retryQueueOf: (delayMs: number) => string
  readonly declarations: Declarations
}

export const of = (sourceQueue: string, policy: RetryPolicy): Result.Result<RetryQueues, SettingsError> => {
  const queues = makeQueues("quorum", sourceQueue, policy)
  const tooLong = queues.declarations.queues.find(({ name }) => !fitsShortString(name))
  if (sourceQueue.trim() === "" || tooLong !== undefined) {
    const problem = tooLong
      ? `leads to the queue name ${tooLong.name}, which has more than ${maxShortBytes} bytes: use a shorter queue name`
      : "must not be blank"
    return Result.fail(SettingsError.of("RetryQueues", [{ field: "source_queue", problem }]))
  }
  return Result.succeed(queues)
}

const makeQueues = (queueType: RetryQueueType, sourceQueue: string, policy: RetryPolicy): RetryQueues => {
  const { argumentsOf, suffix } = argumentsByType[queueType]
  const retryQueueOf = (delayMs: number) => `${sourceQueue}${policy.retryQueueSuffix}.${delayMs}ms${suffix}`
  const deadLetterQueue = `${sourceQueue}${policy.deadLetterQueueSuffix}`
  const retryQueues = policy.delays.map(
    (delayMs): Queue => ({
      name: retryQueueOf(delayMs),
      arguments: {
        // The type is always set, because the virtual host may have another default queue type.
        "x-queue-type": queueType,
        "x-message-ttl": delayMs,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": sourceQueue,
        ...argumentsOf(delayMs)
      }
    })
  )
  const declarations = { exchanges: [], queues: [...retryQueues, { name: deadLetterQueue }], bindings: [] }
  return { sourceQueue, policy, queueType, deadLetterQueue, retryQueueOf, declarations }
}

/** One day. Messages are lost only if a worker pauses for 23 hours between redeclaring a queue and publishing to it. */
const expiryMarginMs = 86_400_000

export const redeclareEveryMs = 3_600_000

/**
 * Existing queues keep their arguments. If you change the arguments here, change the suffix as well.
 *
 * The broker deletes a classic queue **with its messages** if it is not redeclared within `x-expires`. Publishing does
 * not renew the queue. `x-expires` is therefore the delay plus `expiryMarginMs`. Workers redeclare the queues every
 * `redeclareEveryMs`.
 */
const argumentsByType: Readonly<
  Record<RetryQueueType, { readonly suffix: string; readonly argumentsOf: (delayMs: number) => Fields }>
> = {
  quorum: {
    suffix: ".quorum",
    // Without `reject-publish`, RabbitMQ ignores this strategy and may lose messages.
    argumentsOf: () => ({ "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish" })
  },
  classic: { suffix: "", argumentsOf: (delayMs) => ({ "x-expires": delayMs + expiryMarginMs }) }
}

/**
 * Declares the queues with a type that this broker supports, and returns these queues. Does not change an existing
 * dead-letter queue, because an operator may have chosen its type.
 */
export const declare = Effect.fn("RetryQueues.declare")(function* (
  broker: Broker["Service"],
  requested: RetryQueues
): Effect.fn.Return<RetryQueues, TopologyError | BrokerError> {
  const queues = (yield* supportsType(broker, requested)) ? requested : yield* fallBackToClassic(requested)
  const { declarations, deadLetterQueue } = queues
  const hasDeadLetterQueue = Option.isSome(yield* broker.inspect(deadLetterQueue))
  const missing = declarations.queues.filter(({ name }) => !(hasDeadLetterQueue && name === deadLetterQueue))
  yield* TopologyPlan.declare(broker, { kind: "RetryQueues" }, { ...declarations, queues: missing })
  return queues
})

const fallBackToClassic = ({ policy, sourceQueue }: RetryQueues) =>
  Effect.as(
    Effect.logWarning(
      `Retries of ${sourceQueue} wait in classic queues, because a feature flag of RabbitMQ is disabled. A retry is lost if RabbitMQ crashes when its delay ends. ` +
        "Enable all feature flags (rabbitmqctl enable_feature_flag all), then restart this worker."
    ),
    makeQueues("classic", sourceQueue, policy)
  )

/**
 * Returns whether the broker moves messages out of quorum queues without loss. This requires the feature flag of
 * streams. Without the flag, RabbitMQ ignores `x-dead-letter-strategy`. The check declares an invalid stream, which the
 * broker always refuses. The error shows whether the flag is disabled.
 */
const supportsType = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  { queueType, policy, sourceQueue }: RetryQueues
) {
  if (queueType === "classic" || policy.delays.length === 0) return true
  const { version } = yield* broker.server
  if (BrokerCapabilities.of(version)?.streams === "always") return true
  const stream = { name: `${sourceQueue}.retry.probe`, durable: false, arguments: { "x-queue-type": "stream" } }
  return yield* Effect.match(broker.declare({ exchanges: [], queues: [stream], bindings: [] }), {
    onSuccess: () => true,
    onFailure: ({ message }) => !message.includes("feature flag is disabled")
  })
})
