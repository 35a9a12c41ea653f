import type { Fields, Properties, Settlement } from "../../src/services/Broker.ts"
import type { BrokerState, RoutingResult } from "./BrokerState.ts"
import type { ClientConnection } from "./ClientConnection.ts"
import { describeResource, refuse } from "./queues/ChannelException.ts"
import type { Consumer } from "./queues/Consumers.ts"
import { typeOf } from "./queues/Fields.ts"
import type { LiveQueue } from "./queues/LiveQueue.ts"
import type { Message } from "./queues/Message.ts"
import type { Entry } from "./queues/ReadyMessages.ts"

export interface ReceivedMessage {
  readonly queue: string
  readonly exchange: string
  readonly routingKey: string
  readonly content: Uint8Array
  readonly properties: Properties
  readonly redelivered: boolean
  readonly deliveryTag: number
}

interface UnsettledDelivery {
  readonly queue: LiveQueue
  readonly entry: Entry
  readonly consumer: Consumer | undefined
}

interface ConsumeOptions {
  readonly queue: string
  readonly prefetch: number
  readonly arguments: Fields | undefined
  /** Called when the broker has accepted the consumer, before the first delivery. */
  readonly onStarted: () => void
  readonly onDelivery: (received: ReceivedMessage) => void
  readonly onCancelled: () => void
}

/** The broker's side of a channel, with its consumers and unsettled deliveries. */
export class Channel {
  isOpen = true
  readonly #broker: BrokerState
  readonly #connection: ClientConnection
  readonly #unsettled = new Map<number, UnsettledDelivery>()
  readonly #consumers = new Map<Consumer, LiveQueue>()
  readonly #stopListening: () => void
  #lastDeliveryTag = 0

  constructor(broker: BrokerState, connection: ClientConnection) {
    this.#broker = broker
    this.#connection = connection
    this.#stopListening = connection.onEnd(() => this.close())
  }

  get(name: string): ReceivedMessage | undefined {
    return this.#broker.atomically(() => {
      const queue = this.#broker.queue(name, this.#connection)
      const entry = queue.get()
      return entry === undefined ? undefined : this.#track({ queue, entry, consumer: undefined })
    })
  }

  consume(options: ConsumeOptions): Consumer {
    return this.#broker.atomically(() => {
      const queue = this.#broker.queue(options.queue, this.#connection)
      const priority = options.arguments?.["x-priority"] ?? 0
      const streamOffset = options.arguments?.["x-stream-offset"]
      if (typeof priority !== "number" || !Number.isInteger(priority)) {
        const why = `"expected integer, got ${typeOf(priority)}"`
        return refuse(406, `invalid arg 'x-priority' for ${describeResource("queue", options.queue)}: ${why}`)
      }
      queue.checkConsumer(options.prefetch, streamOffset)
      const consumer: Consumer = {
        priority,
        prefetch: options.prefetch === 0 ? Infinity : options.prefetch,
        streamOffset,
        unsettled: 0,
        deliver: (entry) => {
          const received = this.#track({ queue, entry, consumer })
          this.#send(() => options.onDelivery(received))
        },
        onCancelled: () => {
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
    if (queue !== undefined) this.#broker.atomically(() => queue.cancel(consumer))
  }

  settle(tag: number, settlement: Settlement): void {
    const unsettled = this.#unsettled.get(tag)
    if (unsettled === undefined) return
    this.#unsettled.delete(tag)
    this.#broker.atomically(() => unsettled.queue.settle(unsettled.entry, settlement, unsettled.consumer))
  }

  publish(message: Message): RoutingResult {
    return this.#broker.atomically(() => this.#broker.publish(message))
  }

  /** Unsettled deliveries return to their queues. */
  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#stopListening()
    this.#broker.atomically(() => {
      const closing = new Map<LiveQueue, { readonly consumers: Array<Consumer>; readonly entries: Array<Entry> }>()
      const of = (queue: LiveQueue) => {
        const known = closing.get(queue) ?? { consumers: [], entries: [] }
        closing.set(queue, known)
        return known
      }
      for (const { entry, queue } of this.#unsettled.values()) of(queue).entries.push(entry)
      for (const [consumer, queue] of this.#consumers) of(queue).consumers.push(consumer)
      for (const [queue, { consumers, entries }] of closing) queue.onChannelClosed(consumers, entries)
      this.#unsettled.clear()
      this.#consumers.clear()
    })
  }

  #send(run: () => void): void {
    this.#connection.send(() => {
      if (this.isOpen) run()
    })
  }

  #track(unsettled: UnsettledDelivery): ReceivedMessage {
    const { consumer, entry, queue } = unsettled
    const { content, exchange, properties, routingKeys } = entry.message
    const added = queue.deliveryHeaders(entry, consumer === undefined ? "get" : "deliver")
    const deliveryTag = ++this.#lastDeliveryTag
    this.#unsettled.set(deliveryTag, unsettled)
    return {
      queue: queue.declared.name,
      exchange,
      routingKey: routingKeys[0],
      // A copy, because a consumer could change the content before a redelivery.
      content: Uint8Array.from(content),
      properties: added === undefined ? properties : { ...properties, headers: { ...properties.headers, ...added } },
      redelivered: entry.returnCount > 0,
      deliveryTag
    }
  }
}
