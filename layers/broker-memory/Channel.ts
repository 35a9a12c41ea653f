import type { Fields, Properties, Settlement } from "../../src/services/Broker.ts"
import type { Node, Routed } from "./Node.ts"
import type { Consumer } from "./queues/Consumers.ts"
import { typeOf } from "./queues/Fields.ts"
import type { LiveQueue } from "./queues/Host.ts"
import type { Message } from "./queues/Message.ts"
import type { Entry } from "./queues/ReadyMessages.ts"
import { at, refuse } from "./queues/Refusal.ts"
import type { Line } from "./Wire.ts"

export interface Arrived {
  readonly queue: string
  readonly exchange: string
  readonly routingKey: string
  readonly content: Uint8Array
  readonly properties: Properties
  readonly redelivered: boolean
  readonly deliveryTag: number
}

interface Unsettled {
  readonly queue: LiveQueue
  readonly entry: Entry
  readonly consumer: Consumer | undefined
}

export interface ConsumeOptions {
  readonly queue: string
  readonly prefetch: number
  readonly arguments: Fields | undefined
  /** It is registered: before the first delivery. */
  readonly onStarted: () => void
  readonly onDelivery: (arrived: Arrived) => void
  /** The queue was deleted. */
  readonly onCancelled: () => void
}

/** The broker's side of a channel: who consumes, and what is not settled yet. */
export class Channel {
  isOpen = true
  readonly #node: Node
  readonly #line: Line
  readonly #unsettled = new Map<number, Unsettled>()
  readonly #consumers = new Map<Consumer, LiveQueue>()
  readonly #stopListening: () => void
  #tag = 0

  constructor(node: Node, line: Line) {
    this.#node = node
    this.#line = line
    this.#stopListening = line.onEnd(() => this.close())
  }

  get(name: string): Arrived | undefined {
    return this.#node.step(() => {
      const queue = this.#node.queue(name, this.#line)
      const entry = queue.get()
      return entry === undefined ? undefined : this.#arrived({ queue, entry, consumer: undefined })
    })
  }

  consume(options: ConsumeOptions): Consumer {
    return this.#node.step(() => {
      const queue = this.#node.queue(options.queue, this.#line)
      const priority = options.arguments?.["x-priority"] ?? 0
      const streamOffset = options.arguments?.["x-stream-offset"]
      if (typeof priority !== "number" || !Number.isInteger(priority)) {
        const why = `"expected integer, got ${typeOf(priority)}"`
        return refuse(406, `invalid arg 'x-priority' for ${at("queue", options.queue)}: ${why}`)
      }
      queue.checkConsumer(options.prefetch, streamOffset)
      const consumer: Consumer = {
        priority,
        prefetch: options.prefetch === 0 ? Infinity : options.prefetch,
        streamOffset,
        unsettled: 0,
        deliver: (entry) => {
          const arrived = this.#arrived({ queue, entry, consumer })
          this.#send(() => options.onDelivery(arrived))
        },
        cancelled: () => {
          this.#consumers.delete(consumer)
          this.#send(options.onCancelled)
        }
      }
      this.#consumers.set(consumer, queue)
      this.#send(options.onStarted)
      queue.consume(consumer)
      return consumer
    })
  }

  cancel(consumer: Consumer): void {
    const queue = this.#consumers.get(consumer)
    this.#consumers.delete(consumer)
    if (queue !== undefined) this.#node.step(() => queue.cancel(consumer))
  }

  settle(tag: number, how: Settlement): void {
    const unsettled = this.#unsettled.get(tag)
    if (unsettled === undefined) return
    this.#unsettled.delete(tag)
    this.#node.step(() => unsettled.queue.settle(unsettled.entry, how, unsettled.consumer))
  }

  publish(message: Message): Routed {
    return this.#node.step(() => this.#node.publish(message))
  }

  /** What is not settled goes back to where it came from. */
  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#stopListening()
    this.#node.step(() => {
      const left = new Map<LiveQueue, { readonly consumers: Array<Consumer>; readonly entries: Array<Entry> }>()
      const of = (queue: LiveQueue) => {
        const known = left.get(queue) ?? { consumers: [], entries: [] }
        left.set(queue, known)
        return known
      }
      for (const { entry, queue } of this.#unsettled.values()) of(queue).entries.push(entry)
      for (const [consumer, queue] of this.#consumers) of(queue).consumers.push(consumer)
      for (const [queue, { consumers, entries }] of left) queue.leave(consumers, entries)
      this.#unsettled.clear()
      this.#consumers.clear()
    })
  }

  #send(happen: () => void): void {
    this.#line.send(() => {
      if (this.isOpen) happen()
    })
  }

  #arrived(unsettled: Unsettled): Arrived {
    const { consumer, entry, queue } = unsettled
    const { content, exchange, properties, routingKeys } = entry.message
    const added = queue.headersOf(entry, consumer === undefined ? "get" : "deliver")
    const deliveryTag = ++this.#tag
    this.#unsettled.set(deliveryTag, unsettled)
    return {
      queue: queue.declared.name,
      exchange,
      routingKey: routingKeys[0],
      // A copy: what a consumer does to it must not show in what is delivered again.
      content: Uint8Array.from(content),
      properties: added === undefined ? properties : { ...properties, headers: { ...properties.headers, ...added } },
      redelivered: entry.returns > 0,
      deliveryTag
    }
  }
}
