import { Effect, Option, Result } from "effect"
import type { Broker, BrokerError, Declarations, Fields, Queue } from "../../services/Broker.ts"
import { fitsShortString, maxShortBytes } from "../envelope/Envelope.ts"
import { SettingsError, type TopologyError } from "../envelope/Errors.ts"
import * as BrokerCapabilities from "../topology/BrokerCapabilities.ts"
import type { RetryPolicy } from "../topology/RetryPolicy.ts"
import * as TopologyPlan from "../topology/TopologyPlan.ts"

/**
 * The type of a retry queue decides how a message returns to its source queue when the delay ends. `quorum`: the
 * message leaves the retry queue only after the source queue has stored it. `classic`: the message is lost if the
 * broker dies before the source queue has stored it, or if the source queue has no leader.
 */
export type RetryQueueType = "quorum" | "classic"

/**
 * The retry queues and the dead-letter queue of one worker queue. All are durable and reached by the default exchange.
 * The name of a retry queue contains its delay and type: a queue cannot be redeclared with other arguments, so another
 * delay needs another queue.
 *
 * Queues of former delays remain, empty, until an operator deletes them. `x-expires` is not an alternative: redeclaring
 * a quorum queue does not renew it (rabbitmq-server #5894), the time of a broker outage counts, and expiry drops
 * waiting messages.
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
        // The type is explicit, because a virtual host may have another default.
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

/**
 * A day. A worker would have to pause, while connected, for 23 hours between a declaration and a publish to lose
 * messages.
 */
export const expiryMarginMs = 86_400_000

export const redeclareEveryMs = 3_600_000

/**
 * Changing these arguments would change them for existing queues: change the suffix as well.
 *
 * The broker deletes a classic queue that was not declared for `x-expires`, **together with its messages**; publishing
 * does not count as use. The expiry is therefore the delay plus `expiryMarginMs`, and publishers of retries redeclare
 * the queues every `redeclareEveryMs`.
 */
const argumentsByType: Readonly<
  Record<RetryQueueType, { readonly suffix: string; readonly argumentsOf: (delayMs: number) => Fields }>
> = {
  quorum: {
    suffix: ".quorum",
    // Without `reject-publish` the broker accepts the strategy but applies at-most-once.
    argumentsOf: () => ({ "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish" })
  },
  classic: { suffix: "", argumentsOf: (delayMs) => ({ "x-expires": delayMs + expiryMarginMs }) }
}

/**
 * Declares the queues with a type that this broker supports, and returns them. An existing dead-letter queue is kept as
 * it is: messages never leave it by themselves, so any type is safe, and an operator may have made it a replicated
 * queue.
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
      `Retries of ${sourceQueue} wait in classic queues, and can be lost if RabbitMQ crashes when their delay ends: ` +
        "enable its feature flags (rabbitmqctl enable_feature_flag all), then restart this worker."
    ),
    makeQueues("classic", sourceQueue, policy)
  )

/**
 * Dead-lettering at least once requires the feature flag of streams; without it, quorum queues accept the strategy but
 * apply at-most-once. The check declares a stream that is not durable, which the broker always refuses, and reads from
 * the error whether it knows streams. If it does not, the connection is lost.
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
