import { Context, Effect, Layer, Option } from "effect"
import { Broker } from "../../services/Broker.ts"

/** A queue with ready messages. */
export interface WaitingQueue {
  readonly queue: string
  readonly ready: number
  readonly consumers: number
}

/**
 * Reports the ready messages in the queues of workers. A task that no worker has received has no status yet, so
 * responses about an unknown task mention these queues.
 */
export class WaitingMessages extends Context.Service<
  WaitingMessages,
  {
    /** The queues with ready messages, at most a second old. Empty if the broker does not respond. */
    readonly queues: Effect.Effect<ReadonlyArray<WaitingQueue>>
  }
>()("svc/WaitingMessages") {}

/** A request about a task waits at most this long for the broker. */
const inspectTimeout = "2 seconds"
/** Clients that poll for the first status of a task cause at most one request to the broker in this time. */
const cacheTtl = "1 second"

/** Inspects the given queues, from which workers consume tasks. */
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
      // The queues are inspected concurrently, so that one that does not respond does not delay the others.
      const inspectAll = Effect.map(Effect.forEach(queues, inspectQueue, { concurrency: "unbounded" }), (found) =>
        found.flat()
      )
      return { queues: yield* Effect.cachedWithTTL(inspectAll, cacheTtl) }
    })
  )

/** The queues with ready messages. Empty if `WaitingMessages` is not provided. */
export const queues: Effect.Effect<ReadonlyArray<WaitingQueue>> = Effect.flatMap(
  Effect.serviceOption(WaitingMessages),
  Option.match({ onNone: () => Effect.succeed([]), onSome: ({ queues }) => queues })
)

const maxNamedQueues = 5

/** Returns a sentence that names the queues in which a task may wait. Empty if no message waits. */
export const sentence = (waiting: ReadonlyArray<WaitingQueue>): string => {
  if (waiting.length === 0) return ""
  const named = waiting.slice(0, maxNamedQueues).map(({ consumers, queue, ready }) => {
    const others = ready === 1 ? "as the only message" : `after at most ${ready - 1} other messages`
    return `${queue} (${others}; ${describeConsumers(consumers)})`
  })
  const more = waiting.length > maxNamedQueues ? ", or in another queue" : ""
  return `If it was published, it waits in ${named.join(", or in ")}${more}.`
}

const describeConsumers = (consumers: number): string => {
  if (consumers === 0) return "no consumer"
  return consumers === 1 ? "1 consumer" : `${consumers} consumers`
}
