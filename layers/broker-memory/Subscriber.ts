import type { ConsumeOptions, Delivery } from "../../src/services/Broker.ts"
import { type Arrived, Channel } from "./Channel.ts"
import type { Node } from "./Node.ts"
import type { Consumer } from "./queues/Consumers.ts"
import type { Line } from "./Wire.ts"

/** How long a delivery is held that its receiver threw at, before it goes back to its queue. */
const heldMs = 1_000

/** Milliseconds before the given try; the first comes at once. */
export const pauseBefore = (attempt: number): number => (attempt <= 1 ? 0 : Math.min(50 * 2 ** (attempt - 2), 700))

/** What a subscriber needs of its client. */
export interface Connecting {
  readonly node: Node
  readonly line: () => Line | undefined
  readonly declareAgain: (line: Line) => void
  readonly report: (what: string, defect: unknown) => void
}

interface Epoch {
  readonly number: number
  readonly line: Line
  readonly channel: Channel
  /** Of a stream: what was delivered and is not settled, in order, and what comes behind all that was delivered. */
  readonly open: Set<number>
  next: number | undefined
  consumer: Consumer | undefined
  begun: boolean
}

export const deliveryOf = (arrived: Arrived, channel: Channel, epoch: number, onSettled = () => {}): Delivery => {
  let isSettled = false
  return {
    ...arrived,
    epoch,
    settle: (how) => {
      if (isSettled) return "settled"
      if (!channel.isOpen) return "stale"
      isSettled = true
      onSettled()
      channel.settle(arrived.deliveryTag, how)
      return "requested"
    }
  }
}

/** What a receiver throws harms nobody else. The delivery goes back; after a pause, as it comes again at once. */
export const hand = (delivery: Delivery, receive: ConsumeOptions["onDelivery"], { node, report }: Connecting): void => {
  try {
    receive(delivery)
  } catch (defect) {
    report(`onDelivery of queue ${delivery.queue} threw`, defect)
    node.timers.set(delivery, node.now() + heldMs, () => delivery.settle("requeue"))
  }
}

/** A consumer through all its epochs. */
export class Subscriber {
  readonly #client: Connecting
  readonly #options: ConsumeOptions
  #epochs = 0
  #attempt = 0
  #current: Epoch | undefined
  #resumeAt: number | undefined
  #isOver = false

  constructor(client: Connecting, options: ConsumeOptions) {
    this.#client = client
    this.#options = options
  }

  /** Throws when the broker refuses. */
  begin(line: Line, started: () => void = () => {}): void {
    const { node } = this.#client
    const number = this.#epochs + 1
    const channel = new Channel(node, line)
    const epoch: Epoch = {
      number,
      line,
      channel,
      open: new Set(),
      next: undefined,
      consumer: undefined,
      begun: false
    }
    try {
      const isStream = node.kindOf(this.#options.queue) === "stream"
      const given = this.#options.arguments
      const resuming = isStream && this.#resumeAt !== undefined
      epoch.consumer = channel.consume({
        queue: this.#options.queue,
        prefetch: this.#options.prefetch,
        arguments: resuming ? { ...given, "x-stream-offset": this.#resumeAt ?? 0 } : given,
        onStarted: () => {
          epoch.begun = true
          this.#attempt = 0
          started()
          if (number > 1) this.#tell("onResumed", () => this.#options.onResumed?.(number))
        },
        onDelivery: (arrived) => this.#deliver(epoch, arrived, isStream),
        onCancelled: () => this.#end(epoch, "The broker cancelled the consumer")
      })
    } catch (error) {
      channel.close()
      throw error
    }
    this.#epochs = number
    this.#current = epoch
    line.onEnd((reason) => this.#end(epoch, reason))
  }

  /** A new connection is there. */
  resume(line: Line): void {
    if (this.#isOver || this.#current !== undefined) return
    try {
      this.begin(line)
    } catch (error) {
      if (this.#attempt < 2) this.#client.report(`The consumer of queue ${this.#options.queue} is not back yet`, error)
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
    this.#isOver = true
    this.#client.node.timers.clear(this)
  }

  #deliver(epoch: Epoch, arrived: Arrived, isStream: boolean): void {
    if (this.#current !== epoch) return
    const offset = arrived.properties.headers?.["x-stream-offset"]
    if (!isStream || typeof offset !== "number") {
      hand(deliveryOf(arrived, epoch.channel, epoch.number), this.#options.onDelivery, this.#client)
      return
    }
    epoch.open.add(offset)
    epoch.next = offset + 1
    const settled = () => {
      epoch.open.delete(offset)
    }
    hand(deliveryOf(arrived, epoch.channel, epoch.number, settled), this.#options.onDelivery, this.#client)
  }

  #end(epoch: Epoch, reason: string): void {
    if (this.#current !== epoch) return
    this.#current = undefined
    const [unsettled] = epoch.open
    this.#resumeAt = unsettled ?? epoch.next ?? this.#resumeAt
    epoch.channel.close()
    if (epoch.begun) this.#tell("onLost", () => this.#options.onLost?.(epoch.number, reason))
    if (epoch.line.isOpen) this.#retry()
  }

  /** The connection is well, and this consumer is not: its queue may be gone. */
  #retry(): void {
    if (this.#isOver) return
    const { node } = this.#client
    const again = () => {
      const line = this.#client.line()
      if (line === undefined || this.#isOver) return
      this.#client.declareAgain(line)
      this.resume(line)
    }
    const pause = pauseBefore(++this.#attempt)
    if (pause > 0) node.timers.set(this, node.now() + pause, again)
    else this.#client.line()?.send(again)
  }

  #tell(what: string, call: () => void): void {
    try {
      call()
    } catch (defect) {
      this.#client.report(`${what} of queue ${this.#options.queue} threw`, defect)
    }
  }
}
