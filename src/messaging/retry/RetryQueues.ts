import { Effect, Option, Result } from "effect"
import type { Broker, BrokerError, Declarations, Fields, Queue } from "../../services/Broker.ts"
import { fitsShortString, maxShortBytes } from "../envelope/Envelope.ts"
import { SettingsError, type TopologyError } from "../envelope/Errors.ts"
import * as BrokerCapabilities from "../topology/BrokerCapabilities.ts"
import type { RetryPolicy } from "../topology/RetryPolicy.ts"
import * as TopologyPlan from "../topology/TopologyPlan.ts"

/**
 * The type of a retry queue determines how a message moves to its source queue when the delay ends. `quorum`: the
 * message stays in the retry queue until the source queue has stored it. `classic`: the message is lost if the broker
 * crashes before the source queue has stored it, or if the source queue has no leader.
 */
type RetryQueueType = "quorum" | "classic"

/**
 * The retry queues and the dead-letter queue of one worker queue. All are durable, and messages reach them through the
 * default exchange. The name of a retry queue contains its delay and type: another delay needs another queue, because a
 * queue cannot be redeclared with other arguments.
 *
 * If the delays change, the queues of former delays remain until an operator deletes them. `x-expires` cannot do this:
 * redeclaring a quorum queue does not renew it (rabbitmq-server #5894), a broker outage counts as disuse, and expiry
 * drops the waiting messages.
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
      ? `results in ${tooLong.name}, which has more than ${maxShortBytes} bytes: use a shorter queue name`
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
        // Set in any case, because the virtual host may have another default type.
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

/** One day. A worker that pauses for 23 hours between declaring a queue and publishing to it would lose messages. */
const expiryMarginMs = 86_400_000

export const redeclareEveryMs = 3_600_000

/**
 * Existing queues keep the arguments that they were declared with. To change these arguments, change the suffix as
 * well.
 *
 * The broker deletes a classic queue that was not redeclared within `x-expires`, **together with its messages**.
 * Publishing does not count as use. `x-expires` is therefore the delay plus `expiryMarginMs`, and workers redeclare the
 * queues every `redeclareEveryMs`.
 */
const argumentsByType: Readonly<
  Record<RetryQueueType, { readonly suffix: string; readonly argumentsOf: (delayMs: number) => Fields }>
> = {
  quorum: {
    suffix: ".quorum",
    // Without `reject-publish`, RabbitMQ ignores the strategy: a message may be lost on its way.
    argumentsOf: () => ({ "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish" })
  },
  classic: { suffix: "", argumentsOf: (delayMs) => ({ "x-expires": delayMs + expiryMarginMs }) }
}

/**
 * Declares the queues with a type that this broker supports and returns them. An existing dead-letter queue is left as
 * it is, whatever its type: an operator may have made it a replicated queue.
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
      `Retries of ${sourceQueue} wait in classic queues and are lost if RabbitMQ crashes when their delay ends: ` +
        "enable all feature flags (rabbitmqctl enable_feature_flag all), then restart this worker."
    ),
    makeQueues("classic", sourceQueue, policy)
  )

/**
 * Returns whether the broker moves messages out of quorum queues without losing any. This requires the feature flag of
 * streams; without it, RabbitMQ ignores `x-dead-letter-strategy`. The check declares an invalid stream, which the
 * broker always refuses, and reads from the error whether the flag is disabled.
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
