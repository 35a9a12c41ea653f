import { Context, Effect, Layer, Option } from "effect"
import { Broker } from "../../services/Broker.ts"

/** A queue with ready messages. */
export interface WaitingQueue {
  readonly queue: string
  readonly ready: number
  readonly consumers: number
}

/**
 * Reports which worker queues have ready messages. The 404 response for an unknown task names these queues, because the
 * task may be in one of them.
 */
export class WaitingMessages extends Context.Service<
  WaitingMessages,
  {
    /** The queues with ready messages, cached for one second. Empty if the broker does not respond. */
    readonly queues: Effect.Effect<ReadonlyArray<WaitingQueue>>
  }
>()("svc/WaitingMessages") {}

const inspectTimeout = "2 seconds"
/** Without this cache, every client that polls for the status of an unknown task would cause requests to the broker. */
const cacheTtl = "1 second"

/** Reports the ready messages of the given queues. */
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
      // Inspects the queues concurrently. A queue that does not respond must not delay the other inspections.
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

/** Returns a sentence that names the queues in which a task may wait. Returns an empty string if no message waits. */
export const sentence = (waiting: ReadonlyArray<WaitingQueue>): string => {
  if (waiting.length === 0) return ""
  const named = waiting.slice(0, maxNamedQueues).map(({ consumers, queue, ready }) => {
    const others = ready === 1 ? "as the only message" : `after at most ${ready - 1} other messages`
    return `${queue} (${others}; ${describeConsumers(consumers)})`
  })
  const more = waiting.length > maxNamedQueues ? ", or in another queue" : ""
  return `If the task was published, it waits in ${named.join(", or in ")}${more}.`
}

const describeConsumers = (consumers: number): string => {
  if (consumers === 0) return "no consumer"
  return consumers === 1 ? "1 consumer" : `${consumers} consumers`
}
