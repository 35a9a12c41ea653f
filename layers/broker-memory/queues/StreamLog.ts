import type { Field, Fields, Queue } from "../../../src/services/Broker.ts"
import { type Consumer, hasRoom } from "./Consumers.ts"
import { type Host, type LiveQueue, textOf, wholeOf } from "./Host.ts"
import { type Message, weight } from "./Message.ts"
import type { Entry } from "./ReadyMessages.ts"
import { at, refuse } from "./Refusal.ts"

interface Stored {
  readonly message: Message
  readonly time: number
}

/** Ends where it has its size: what is old goes by whole segments, and never the last. */
interface Segment {
  readonly first: number
  readonly stored: Array<Stored>
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

const interval = (text: string): number | undefined => {
  const [, count, unit] = /^(\d+)([YMDhms])$/.exec(text) ?? []
  return count === undefined || unit === undefined ? undefined : Number(count) * (units[unit] ?? 0) * 1_000
}

/** An append-only log: every consumer reads all of it from where it likes, and acknowledging frees room, no more. */
export class StreamLog implements LiveQueue {
  readonly declared: Queue
  readonly #host: Host
  readonly #cursors = new Map<Consumer, number>()
  readonly #maxBytes: number
  readonly #maxAge: number
  readonly #segmentBytes: number
  #segments: Array<Segment> = [{ first: 0, stored: [], bytes: 0 }]
  #held = 0

  constructor(declared: Queue, host: Host) {
    this.declared = declared
    this.#host = host
    this.#maxBytes = wholeOf(declared, "x-max-length-bytes") ?? Infinity
    const age = textOf(declared, "x-max-age")
    this.#maxAge = age === undefined ? Infinity : (interval(age) ?? refuse(541, `x-max-age ${age}`))
    this.#segmentBytes = wholeOf(declared, "x-stream-max-segment-size-bytes") ?? defaultSegmentBytes
  }

  get messages(): number {
    return this.#next - this.#first
  }

  /** RabbitMQ counts none on a stream. */
  get consumers(): number {
    return 0
  }

  touch(): void {}

  enqueue(message: Message): boolean {
    let segment = this.#last
    if (segment.bytes >= this.#segmentBytes && segment.stored.length > 0) {
      segment = { first: this.#next, stored: [], bytes: 0 }
      this.#segments.push(segment)
      this.#retain()
    }
    segment.stored.push({ message, time: this.#host.now() })
    segment.bytes += message.content.byteLength
    this.#hold(weight(message))
    for (const consumer of this.#cursors.keys()) this.#serve(consumer)
    return true
  }

  get(): never {
    return refuse(540, `basic.get not supported by stream queues ${at("queue", this.declared.name)}`)
  }

  checkConsumer(prefetch: number, offset: Field | undefined): void {
    if (prefetch === 0) {
      refuse(406, `consumer prefetch count is not set for '${at("queue", this.declared.name)}'`)
    }
    this.#start(offset)
  }

  consume(consumer: Consumer): void {
    this.#cursors.set(consumer, this.#start(consumer.streamOffset))
    this.#serve(consumer)
  }

  cancel(consumer: Consumer): void {
    this.#cursors.delete(consumer)
  }

  settle(_: Entry, __: "ack" | "requeue" | "reject", consumer: Consumer | undefined): void {
    if (consumer === undefined) return
    consumer.unsettled--
    if (this.#cursors.has(consumer)) this.#serve(consumer)
  }

  leave(consumers: ReadonlyArray<Consumer>): void {
    for (const consumer of consumers) this.cancel(consumer)
  }

  headersOf({ position }: Entry): Fields {
    return { "x-stream-offset": position }
  }

  tick(): void {}

  restart(): void {}

  close(): void {
    this.#hold(-this.#held)
    for (const consumer of Array.from(this.#cursors.keys())) consumer.cancelled()
  }

  get #last(): Segment {
    return this.#segments[this.#segments.length - 1]!
  }

  get #first(): number {
    return this.#segments[0]!.first
  }

  get #next(): number {
    return this.#last.first + this.#last.stored.length
  }

  #at(offset: number): Stored | undefined {
    const segment = this.#segments.findLast(({ first }) => first <= offset)
    return segment?.stored[offset - segment.first]
  }

  #start(offset: Field | undefined): number {
    if (offset === undefined || offset === "next") return this.#next
    if (offset === "first") return this.#first
    if (offset === "last") return Math.max(this.#first, this.#next - 1)
    if (offset instanceof Date) return this.#since(offset.getTime())
    // behind the end it waits for just that one
    if (typeof offset === "number" || typeof offset === "bigint") return Math.max(Number(offset), this.#first)
    const age = typeof offset === "string" ? interval(offset) : undefined
    return age === undefined ? refuse(541, "x-stream-offset") : this.#since(this.#host.now() - age)
  }

  #since(time: number): number {
    for (const { first, stored } of this.#segments) {
      const index = stored.findIndex((entry) => entry.time >= time)
      if (index !== -1) return first + index
    }
    return this.#next
  }

  #serve(consumer: Consumer): void {
    while (hasRoom(consumer)) {
      const position = Math.max(this.#cursors.get(consumer) ?? this.#next, this.#first)
      const stored = this.#at(position)
      if (stored === undefined) return
      this.#cursors.set(consumer, position + 1)
      consumer.unsettled++
      consumer.deliver({ message: stored.message, position, priority: 0, expiresAt: undefined, returns: 0 })
    }
  }

  #retain(): void {
    const oldest = this.#host.now() - this.#maxAge
    const total = () => this.#segments.reduce((sum, { bytes }) => sum + bytes, 0)
    while (this.#segments.length > 1) {
      const [segment] = this.#segments
      const newest = segment?.stored.at(-1)
      if (segment === undefined || newest === undefined || (newest.time >= oldest && total() <= this.#maxBytes)) return
      this.#segments.shift()
      this.#hold(-segment.stored.reduce((sum, { message }) => sum + weight(message), 0))
    }
  }

  #hold(bytes: number): void {
    this.#held += bytes
    this.#host.holds(bytes)
  }
}
