import { Effect, Option, Result } from "effect"
import * as StatusEvent from "../../src/messaging/envelope/StatusEvent.ts"
import * as Timestamp from "../../src/messaging/envelope/Timestamp.ts"
import type { Topology } from "../../src/messaging/topology/Topology.ts"
import type { Broker, BrokerError, Delivery, Properties, Queue } from "../../src/services/Broker.ts"
import { bodyOf, textOf } from "./Labels.ts"
import { turns } from "./Turns.ts"

/** A message that is in a queue at the end of a run. */
export interface StoredMessage {
  readonly queue: string
  /** The `task_id` of the body, else the correlation id of the message. */
  readonly taskId: string | undefined
  /** The parsed JSON body, or the text of another body. */
  readonly body: unknown
  readonly properties: Properties
}

/** The broker at the end of a run, when the worker has nothing left to do. Reading it removes nothing. */
export interface Settled {
  /** The statuses in the status queue, in order. Delivery is at-least-once, so a status may be there twice. */
  readonly statuses: ReadonlyArray<StatusEvent.StatusEvent>
  /** The statuses of one task, in order, as texts such as `completed`. */
  readonly statusesOf: (taskId: string) => ReadonlyArray<string>
  /** The messages in queues outside the topology that the worker has declared, such as `<queue>.dlq`. */
  readonly deadLetters: ReadonlyArray<StoredMessage>
  /** The messages in a queue that the worker has declared, or that the topology has. Empty for other queues. */
  readonly messagesIn: (queue: string) => ReadonlyArray<StoredMessage>
}

export const read = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topology: Topology,
  declared: Iterable<Queue>
): Effect.fn.Return<Settled, BrokerError> {
  const deliveries = yield* takeAll(broker, Array.from(declared))
  const statuses = (deliveries.get(topology.status.queue) ?? []).flatMap(({ content }) =>
    Option.toArray(Result.getSuccess(StatusEvent.fromBytes(content, Timestamp.ofMillis(0))))
  )
  const own = new Set(topology.queues.map(({ name }) => name))
  return {
    statuses,
    statusesOf: (taskId) => statuses.flatMap(({ status, task_id }) => (task_id === taskId ? [status] : [])),
    deadLetters: Array.from(deliveries).flatMap(([name, found]) => (own.has(name) ? [] : found.map(storedMessage))),
    messagesIn: (queue) => (deliveries.get(queue) ?? []).map(storedMessage)
  }
})

const mostPrefetched = 65_535

/** Takes all messages without settling them, so that they return to their queues. */
const takeAll = (broker: Broker["Service"], queues: ReadonlyArray<Queue>) =>
  Effect.gen(function* () {
    const found = new Map<string, Array<Delivery>>()
    let count = 0
    for (const queue of queues) {
      if (Option.isNone(yield* broker.inspect(queue.name))) continue
      const deliveries: Array<Delivery> = []
      found.set(queue.name, deliveries)
      yield* broker.consume({
        queue: queue.name,
        prefetch: mostPrefetched,
        ...(queue.arguments?.["x-queue-type"] === "stream" && { arguments: { "x-stream-offset": "first" } }),
        onDelivery: (delivery) => {
          count++
          deliveries.push(delivery)
        }
      })
    }
    yield* turns(() => count)
    return found
  }).pipe(Effect.scoped)

const storedMessage = ({ content, properties, queue }: Delivery): StoredMessage => {
  const body = bodyOf({ content })
  return {
    queue,
    taskId: textOf(body, "task_id") ?? properties.correlationId,
    body: body ?? Buffer.from(content).toString(),
    properties
  }
}
