import { Context, Effect, Layer, Option } from "effect"
import { Broker } from "../../services/Broker.ts"

/** A queue with messages that nobody has taken. */
export interface WaitingQueue {
  readonly queue: string
  readonly ready: number
  readonly consumers: number
}

/**
 * What waits in the queues of workers. A task that was published, and that no worker has taken, leaves no other trace:
 * who asks about a task of which nothing was heard is told of these.
 */
export class WaitingMessages extends Context.Service<
  WaitingMessages,
  {
    /** As of a second ago at most. Empty where nothing waits, and where the broker does not say. */
    readonly queues: Effect.Effect<ReadonlyArray<WaitingQueue>>
  }
>()("svc/WaitingMessages") {}

/** Who asks about a task waits no longer than this for the broker. */
const inspectTimeout = "2 seconds"
/** Clients that poll for the first status of a task must not become questions to the broker. */
const cacheTtl = "1 second"

/** `queues`: those that the workers of the tasks receive from. */
export const layer = (queues: ReadonlyArray<string>): Layer.Layer<WaitingMessages, never, Broker> =>
  Layer.effect(
    WaitingMessages,
    Effect.gen(function* () {
      const { inspect } = yield* Broker
      const inspectQueue = Effect.fnUntraced(function* (queue: string) {
        const found = Option.flatten(yield* Effect.option(Effect.timeout(inspect(queue), inspectTimeout)))
        return Option.match(found, {
          onNone: (): ReadonlyArray<WaitingQueue> => [],
          onSome: ({ consumers, messages: ready }) => (ready > 0 ? [{ queue, ready, consumers }] : [])
        })
      })
      // all at once: one that is silent must not make the others late
      const inspectAll = Effect.map(Effect.forEach(queues, inspectQueue, { concurrency: "unbounded" }), (found) =>
        found.flat()
      )
      return { queues: yield* Effect.cachedWithTTL(inspectAll, cacheTtl) }
    })
  )

/** The queues where somebody provides the service, and else none. */
export const queues: Effect.Effect<ReadonlyArray<WaitingQueue>> = Effect.flatMap(
  Effect.serviceOption(WaitingMessages),
  Option.match({ onNone: () => Effect.succeed([]), onSome: ({ queues }) => queues })
)

/** A sentence has room for so many. */
const maxNamedQueues = 5

/** Where a task is that nobody has taken, if there is one; empty where nothing waits. */
export const sentence = (waiting: ReadonlyArray<WaitingQueue>): string => {
  if (waiting.length === 0) return ""
  const named = waiting.slice(0, maxNamedQueues).map(({ consumers, queue, ready }) => {
    const others = ready === 1 ? "as the only message" : `behind at most ${ready - 1} others`
    return `${queue} (${others}; ${describeConsumers(consumers)})`
  })
  const more = waiting.length > maxNamedQueues ? ", or in another queue" : ""
  return `If it was published, it waits in ${named.join(", or in ")}${more}.`
}

const describeConsumers = (consumers: number): string => {
  if (consumers === 0) return "nobody consumes it"
  return consumers === 1 ? "1 consumer" : `${consumers} consumers`
}
