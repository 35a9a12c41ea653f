import type { ConsumeOptions, Delivery } from "../../src/services/Broker.ts"
import type { BrokerState } from "./BrokerState.ts"
import { Channel, type ReceivedMessage } from "./Channel.ts"
import type { ClientConnection } from "./ClientConnection.ts"
import type { Consumer } from "./queues/Consumers.ts"

/** If the handler of a delivery throws, the delivery is requeued after this delay in milliseconds. */
const requeueDelayMs = 1_000

/** The delay before an attempt to resume, in milliseconds. The first attempt is immediate. */
export const reconnectDelayMs = (attempt: number): number => (attempt <= 1 ? 0 : Math.min(50 * 2 ** (attempt - 2), 700))

export interface SubscriberClient {
  readonly broker: BrokerState
  readonly connection: () => ClientConnection | undefined
  readonly redeclare: (connection: ClientConnection) => void
  readonly report: (what: string, defect: unknown) => void
}

interface Epoch {
  readonly number: number
  readonly connection: ClientConnection
  readonly channel: Channel
  /** Only streams use the two offset fields. `nextOffset` is the offset after the last delivery. */
  readonly unsettledOffsets: Set<number>
  nextOffset: number | undefined
  consumer: Consumer | undefined
  isStarted: boolean
}

export const deliveryOf = (
  received: ReceivedMessage,
  channel: Channel,
  epoch: number,
  onSettled = () => {}
): Delivery => {
  let isSettled = false
  return {
    ...received,
    epoch,
    settle: (how) => {
      if (isSettled) return "settled"
      if (!channel.isOpen) return "stale"
      isSettled = true
      onSettled()
      channel.settle(received.deliveryTag, how)
      return "requested"
    }
  }
}

/** If the handler throws, the delivery is requeued after a delay. Without the delay it would return at once. */
export const handOver = (
  delivery: Delivery,
  receive: ConsumeOptions["onDelivery"],
  { broker, report }: SubscriberClient
): void => {
  try {
    receive(delivery)
  } catch (defect) {
    report(`The callback onDelivery of queue ${delivery.queue} threw an error`, defect)
    broker.timers.set(delivery, broker.now() + requeueDelayMs, () => delivery.settle("requeue"))
  }
}

/** A consumer that survives lost connections. Each connection increases the epoch number. */
export class Subscriber {
  readonly #client: SubscriberClient
  readonly #options: ConsumeOptions
  #lastEpoch = 0
  #attempt = 0
  #current: Epoch | undefined
  #resumeAt: number | undefined
  #isStopped = false

  constructor(client: SubscriberClient, options: ConsumeOptions) {
    this.#client = client
    this.#options = options
  }

  /** Throws if the broker refuses the consumer. */
  start(connection: ClientConnection, onStarted: () => void = () => {}): void {
    const { broker } = this.#client
    const number = this.#lastEpoch + 1
    const channel = new Channel(broker, connection)
    const epoch: Epoch = {
      number,
      connection,
      channel,
      unsettledOffsets: new Set(),
      nextOffset: undefined,
      consumer: undefined,
      isStarted: false
    }
    try {
      const isStream = broker.kindOf(this.#options.queue) === "stream"
      const consumeArguments = this.#options.arguments
      const resuming = isStream && this.#resumeAt !== undefined
      epoch.consumer = channel.consume({
        queue: this.#options.queue,
        prefetch: this.#options.prefetch,
        arguments: resuming ? { ...consumeArguments, "x-stream-offset": this.#resumeAt ?? 0 } : consumeArguments,
        onStarted: () => {
          epoch.isStarted = true
          this.#attempt = 0
          onStarted()
          if (number > 1) this.#callListener("onResumed", () => this.#options.onResumed?.(number))
        },
        onDelivery: (received) => this.#deliver(epoch, received, isStream),
        onCancelled: () => this.#end(epoch, "The broker cancelled the consumer")
      })
    } catch (error) {
      channel.close()
      throw error
    }
    this.#lastEpoch = number
    this.#current = epoch
    connection.onEnd((reason) => this.#end(epoch, reason))
  }

  resume(connection: ClientConnection): void {
    if (this.#isStopped || this.#current !== undefined) return
    try {
      this.start(connection)
    } catch (error) {
      if (this.#attempt < 2)
        this.#client.report(`The consumer of queue ${this.#options.queue} could not resume and is retried`, error)
      this.#retry()
    }
  }

  cancel(): void {
    this.#stop()
    const epoch = this.#current
    if (epoch?.consumer !== undefined) epoch.channel.cancel(epoch.consumer)
  }

  close(): void {
    this.#stop()
    const epoch = this.#current
    this.#current = undefined
    epoch?.channel.close()
  }

  #stop(): void {
    this.#isStopped = true
    this.#client.broker.timers.clear(this)
  }

  #deliver(epoch: Epoch, received: ReceivedMessage, isStream: boolean): void {
    if (this.#current !== epoch) return
    const offset = received.properties.headers?.["x-stream-offset"]
    if (!isStream || typeof offset !== "number") {
      handOver(deliveryOf(received, epoch.channel, epoch.number), this.#options.onDelivery, this.#client)
      return
    }
    epoch.unsettledOffsets.add(offset)
    epoch.nextOffset = offset + 1
    const onSettled = () => {
      epoch.unsettledOffsets.delete(offset)
    }
    handOver(deliveryOf(received, epoch.channel, epoch.number, onSettled), this.#options.onDelivery, this.#client)
  }

  #end(epoch: Epoch, reason: string): void {
    if (this.#current !== epoch) return
    this.#current = undefined
    const [unsettled] = epoch.unsettledOffsets
    this.#resumeAt = unsettled ?? epoch.nextOffset ?? this.#resumeAt
    epoch.channel.close()
    if (epoch.isStarted) this.#callListener("onLost", () => this.#options.onLost?.(epoch.number, reason))
    if (epoch.connection.isOpen) this.#retry()
  }

  /** The consumer failed on an open connection. Its queue may be missing, so all declarations are repeated. */
  #retry(): void {
    if (this.#isStopped) return
    const { broker } = this.#client
    const again = () => {
      const connection = this.#client.connection()
      if (connection === undefined || this.#isStopped) return
      this.#client.redeclare(connection)
      this.resume(connection)
    }
    const pause = reconnectDelayMs(++this.#attempt)
    if (pause > 0) broker.timers.set(this, broker.now() + pause, again)
    else this.#client.connection()?.send(again)
  }

  #callListener(what: string, call: () => void): void {
    try {
      call()
    } catch (defect) {
      this.#client.report(`The callback ${what} of queue ${this.#options.queue} threw an error`, defect)
    }
  }
}
