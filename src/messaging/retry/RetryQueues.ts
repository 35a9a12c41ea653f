import { Effect, Option, Result } from "effect"
import type { Broker, BrokerError, Declarations, Fields, Queue } from "../../services/Broker.ts"
import { fitsShortString, maxShortBytes } from "../envelope/Envelope.ts"
import { SettingsError, type TopologyError } from "../envelope/Errors.ts"
import * as BrokerCapabilities from "../topology/BrokerCapabilities.ts"
import type { RetryPolicy } from "../topology/RetryPolicy.ts"
import * as TopologyPlan from "../topology/TopologyPlan.ts"

/**
 * How a message whose delay is over goes from its retry queue to the queue that it came from. `quorum`: it leaves the one
 * when the other has it, whatever dies meanwhile. `classic`: it leaves the one, and is lost where the broker dies before
 * the other has written it down, or where the other has no leader.
 */
export type RetryQueueType = "quorum" | "classic"

/**
 * The queues in which failed messages of one worker queue wait, and the one in which they end. All are durable, reached
 * through the default exchange and bound to nothing. A retry queue carries its delay and its type in its name: a queue
 * cannot be declared again with other arguments, so another delay is another queue.
 *
 * Those of former delays stay, empty, until somebody deletes them. `x-expires` is no way out: declaring a quorum queue
 * again does not renew it (rabbitmq-server #5894), it goes by the clock on the wall, a broker's outage included, and it
 * drops what waits.
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
      ? `leads to ${tooLong.name}, which has more than ${maxShortBytes} bytes: give the queue a shorter name`
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
        // the type is named, as a virtual host may have another default
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

/** A day: a worker would have to be stopped, but connected, for 23 hours between a declaration and a publish. */
export const expiryMarginMs = 86_400_000

/** An hour. */
export const redeclareEveryMs = 3_600_000

/**
 * Changing arguments here changes them of queues that are there: change the suffix with them.
 *
 * A classic queue is dropped by the broker when nobody declared it for `x-expires`, **with the messages in it**, as
 * publishing and waiting are no use in its eyes. Hence the expiry is the delay and `spareMs` on top, and whoever
 * publishes retries declares the queues again every `redeclareEveryMs`.
 */
const argumentsByType: Readonly<
  Record<RetryQueueType, { readonly suffix: string; readonly argumentsOf: (delayMs: number) => Fields }>
> = {
  quorum: {
    suffix: ".quorum",
    // without `reject-publish` the broker takes the strategy, and goes by at-most-once
    argumentsOf: () => ({ "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish" })
  },
  classic: { suffix: "", argumentsOf: (delayMs) => ({ "x-expires": delayMs + expiryMarginMs }) }
}

/**
 * Declares them as this broker can, and answers what they are now. A dead-letter queue that is there is taken as it is:
 * nothing ever leaves it by itself, so no type of queue can lose anything there, and whoever wants one that is on several
 * nodes may have made it one.
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
      `Retries of ${sourceQueue} wait in classic queues, and those whose delay ends while RabbitMQ dies can be lost: ` +
        "enable its feature flags (rabbitmqctl enable_feature_flag all), then start this worker again."
    ),
    makeQueues("classic", sourceQueue, policy)
  )

/**
 * Dead-lettering at least once comes with the feature flag of streams; without it quorum queues take the strategy, and go
 * by at-most-once. So a stream is asked for that is not durable, which none may be: none comes into being, and the broker
 * says whether it knows streams. Where it does not, that costs the connection.
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
