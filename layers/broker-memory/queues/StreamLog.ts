import type { Field, Fields, Queue } from "../../../src/services/Broker.ts"
import type { StoredOffset } from "./Changes.ts"
import { describeResource, refuse } from "./ChannelException.ts"
import { type Consumer, hasCapacity } from "./Consumers.ts"
import { integerArgument, type LiveQueue, type QueueHost, textArgument } from "./LiveQueue.ts"
import { type Message, memorySize } from "./Message.ts"
import type { Entry } from "./ReadyMessages.ts"

interface StoredMessage {
  readonly message: Message
  readonly time: number
}

/** A part of the log. Retention removes whole segments, but never the last one. */
interface Segment {
  readonly first: number
  readonly stored: Array<StoredMessage>
  bytes: number
}

const defaultSegmentBytes = 500_000_000

const units: Readonly<Record<string, number>> = {
  Y: 31_536_000,
  M: 2_592_000,
  D: 86_400,
  h: 3_600,
  m: 60,
  s: 1
}

const parseInterval = (text: string): number | undefined => {
  const [, count, unit] = /^(\d+)([YMDhms])$/.exec(text) ?? []
  return count === undefined || unit === undefined ? undefined : Number(count) * (units[unit] ?? 0) * 1_000
}

/** An append-only log that each consumer reads from its own offset. Acknowledging a message does not remove it. */
export class StreamLog implements LiveQueue {
  readonly declared: Queue
  readonly #host: QueueHost
  readonly #cursors = new Map<Consumer, number>()
  readonly #maxBytes: number
  readonly #maxAge: number
  readonly #segmentBytes: number
  #segments: Array<Segment> = [{ first: 0, stored: [], bytes: 0 }]
  #heldBytes = 0

  constructor(declared: Queue, host: QueueHost) {
    this.declared = declared
    this.#host = host
    this.#maxBytes = integerArgument(declared, "x-max-length-bytes") ?? Infinity
    const age = textArgument(declared, "x-max-age")
    this.#maxAge = age === undefined ? Infinity : (parseInterval(age) ?? refuse(541, `x-max-age ${age}`))
    this.#segmentBytes = integerArgument(declared, "x-stream-max-segment-size-bytes") ?? defaultSegmentBytes
  }

  get messages(): number {
    return this.#nextOffset - this.#firstOffset
  }

  /** RabbitMQ does not count the consumers of a stream. */
  get consumers(): number {
    return 0
  }

  markUsed(): void {}

  enqueue(message: Message): boolean {
    if (this.#isLastSegmentFull) {
      this.#segments.push({ first: this.#nextOffset, stored: [], bytes: 0 })
      this.#applyRetention()
    }
    const [offset, time] = [this.#nextOffset, this.#host.now()]
    this.#store({ message, time })
    this.#host.record?.(["appended", this.declared.name, { offset, time, message }])
    for (const consumer of this.#cursors.keys()) this.#deliverTo(consumer)
    return true
  }

  get(): never {
    return refuse(540, `basic.get not supported by stream queues ${describeResource("queue", this.declared.name)}`)
  }

  checkConsumer(prefetch: number, offset: Field | undefined): void {
    if (prefetch === 0) {
      refuse(406, `consumer prefetch count is not set for '${describeResource("queue", this.declared.name)}'`)
    }
    this.#startOffset(offset)
  }

  consume(consumer: Consumer): void {
    this.#cursors.set(consumer, this.#startOffset(consumer.streamOffset))
    this.#deliverTo(consumer)
  }

  cancel(consumer: Consumer): void {
    this.#cursors.delete(consumer)
  }

  settle(_: Entry, __: "ack" | "requeue" | "reject", consumer: Consumer | undefined): void {
    if (consumer === undefined) return
    consumer.unsettled--
    if (this.#cursors.has(consumer)) this.#deliverTo(consumer)
  }

  onChannelClosed(consumers: ReadonlyArray<Consumer>): void {
    for (const consumer of consumers) this.cancel(consumer)
  }

  deliveryHeaders({ position }: Entry): Fields {
    return { "x-stream-offset": position }
  }

  onTimer(): void {}

  restart(): void {}

  /** Takes over the messages of an earlier process, with their offsets. */
  restore(stored: ReadonlyArray<StoredOffset>): void {
    const [oldest] = stored
    if (oldest === undefined) return
    this.#segments = [{ first: oldest.offset, stored: [], bytes: 0 }]
    for (const { message, time } of stored) {
      if (this.#isLastSegmentFull) this.#segments.push({ first: this.#nextOffset, stored: [], bytes: 0 })
      this.#store({ message, time })
    }
  }

  close(): void {
    this.#addHeldBytes(-this.#heldBytes)
    for (const consumer of Array.from(this.#cursors.keys())) consumer.onCancelled()
  }

  get #lastSegment(): Segment {
    return this.#segments[this.#segments.length - 1]!
  }

  get #isLastSegmentFull(): boolean {
    const { bytes, stored } = this.#lastSegment
    return bytes >= this.#segmentBytes && stored.length > 0
  }

  get #firstOffset(): number {
    return this.#segments[0]!.first
  }

  get #nextOffset(): number {
    return this.#lastSegment.first + this.#lastSegment.stored.length
  }

  #store(stored: StoredMessage): void {
    const segment = this.#lastSegment
    segment.stored.push(stored)
    segment.bytes += stored.message.content.byteLength
    this.#addHeldBytes(memorySize(stored.message))
  }

  #messageAt(offset: number): StoredMessage | undefined {
    const segment = this.#segments.findLast(({ first }) => first <= offset)
    return segment?.stored[offset - segment.first]
  }

  #startOffset(offset: Field | undefined): number {
    if (offset === undefined || offset === "next") return this.#nextOffset
    if (offset === "first") return this.#firstOffset
    if (offset === "last") return Math.max(this.#firstOffset, this.#nextOffset - 1)
    if (offset instanceof Date) return this.#offsetSince(offset.getTime())
    // With an offset beyond the end, the consumer waits until the message with this offset is stored.
    if (typeof offset === "number" || typeof offset === "bigint") return Math.max(Number(offset), this.#firstOffset)
    const age = typeof offset === "string" ? parseInterval(offset) : undefined
    return age === undefined ? refuse(541, "x-stream-offset") : this.#offsetSince(this.#host.now() - age)
  }

  #offsetSince(time: number): number {
    for (const { first, stored } of this.#segments) {
      const index = stored.findIndex((entry) => entry.time >= time)
      if (index !== -1) return first + index
    }
    return this.#nextOffset
  }

  #deliverTo(consumer: Consumer): void {
    while (hasCapacity(consumer)) {
      const position = Math.max(this.#cursors.get(consumer) ?? this.#nextOffset, this.#firstOffset)
      const stored = this.#messageAt(position)
      if (stored === undefined) return
      this.#cursors.set(consumer, position + 1)
      consumer.unsettled++
      consumer.deliver({ message: stored.message, position, priority: 0, expiresAt: undefined, returnCount: 0 })
    }
  }

  #applyRetention(): void {
    const oldest = this.#host.now() - this.#maxAge
    const total = () => this.#segments.reduce((sum, { bytes }) => sum + bytes, 0)
    while (this.#segments.length > 1) {
      const [segment] = this.#segments
      const newest = segment?.stored.at(-1)
      if (segment === undefined || newest === undefined || (newest.time >= oldest && total() <= this.#maxBytes)) return
      this.#segments.shift()
      this.#host.record?.(["trimmed", this.declared.name, this.#firstOffset])
      this.#addHeldBytes(-segment.stored.reduce((sum, { message }) => sum + memorySize(message), 0))
    }
  }

  #addHeldBytes(bytes: number): void {
    this.#heldBytes += bytes
    this.#host.addHeldBytes(bytes)
  }
}
