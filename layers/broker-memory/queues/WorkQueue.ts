import type { Fields, Queue } from "../../../src/services/Broker.ts"
import { type Change, type StoredEntry, survivesRestart } from "./Changes.ts"
import { describeResource, refuse } from "./ChannelException.ts"
import { type Consumer, Consumers } from "./Consumers.ts"
import type { DeathReason } from "./DeadLetters.ts"
import { integerArgument, type LiveQueue, type QueueHost, textArgument } from "./LiveQueue.ts"
import { type Message, memorySize } from "./Message.ts"
import { kindOf } from "./QueueArguments.ts"
import * as ReadyMessages from "./ReadyMessages.ts"

type Entry = ReadyMessages.Entry

/** A full quorum queue accepts messages again when it has fallen to this fraction of its limit. */
const reopenFraction = 0.8

const size = ({ message }: Entry) => message.content.byteLength

/** A classic or quorum queue. A message has at most one consumer at a time, until the consumer settles the message. */
export class WorkQueue implements LiveQueue {
  readonly declared: Queue
  readonly #host: QueueHost
  /** `undefined` if the queue does not survive a restart. */
  readonly #record: ((change: Change) => void) | undefined
  readonly #isQuorum: boolean
  readonly #consumers: Consumers
  readonly #ttl: number | undefined
  readonly #expiresUnused: number | undefined
  readonly #maxPriority: number
  readonly #maxLength: number
  readonly #maxBytes: number
  readonly #overflow: string
  readonly #deliveryLimit: number
  readonly #ready: ReadyMessages.ReadyMessages
  #readyBytes = 0
  #heldBytes = 0
  #position = 0
  #lastUsedAt: number
  #isFull = false
  #nextMessageExpiry: number | undefined

  constructor(declared: Queue, host: QueueHost) {
    this.declared = declared
    this.#host = host
    this.#record = survivesRestart(declared) ? host.record : undefined
    this.#isQuorum = kindOf(declared) === "quorum"
    this.#consumers = new Consumers({
      singleActive: declared.arguments?.["x-single-active-consumer"] === true,
      parksWhenFilled: this.#isQuorum
    })
    this.#ttl = integerArgument(declared, "x-message-ttl")
    this.#expiresUnused = integerArgument(declared, "x-expires")
    this.#maxPriority = integerArgument(declared, "x-max-priority") ?? 0
    this.#maxLength = integerArgument(declared, "x-max-length") ?? Infinity
    this.#maxBytes = integerArgument(declared, "x-max-length-bytes") ?? Infinity
    const overflow = textArgument(declared, "x-overflow") ?? "drop-head"
    this.#overflow = this.#isQuorum && overflow === "reject-publish-dlx" ? "drop-head" : overflow
    const limit = integerArgument(declared, "x-delivery-limit") ?? -1
    this.#deliveryLimit = limit < 0 ? Infinity : limit
    this.#ready = this.#isQuorum
      ? ReadyMessages.quorum(this.#deliveryLimit !== Infinity)
      : ReadyMessages.classic(this.#maxPriority)
    this.#lastUsedAt = host.now()
    this.#scheduleTimer()
  }

  get messages(): number {
    if (this.#isQuorum) this.#dropExpired()
    // Inspecting a classic queue postpones the time at which it expires.
    else this.markUsed()
    return this.#ready.length
  }

  get consumers(): number {
    return this.#consumers.size
  }

  markUsed(): void {
    this.#lastUsedAt = this.#host.now()
    this.#scheduleTimer()
  }

  enqueue(message: Message): boolean {
    if (this.#isQuorum) this.#dropExpired()
    if (this.#refuses(message)) {
      if (this.#overflow === "reject-publish-dlx") this.#host.deadLetter(message, "maxlen", this)
      return false
    }
    const lifetime = Math.min(this.#ttl ?? Infinity, message.properties.expiration ?? Infinity)
    const entry: Entry = {
      message,
      position: this.#position++,
      priority: Math.min(message.properties.priority ?? 0, this.#maxPriority),
      expiresAt: lifetime === Infinity ? undefined : this.#host.now() + lifetime,
      returnCount: 0
    }
    this.#addHeldBytes(memorySize(message))
    this.#add("add", entry)
    if (this.#isRecorded(entry)) this.#record?.(["added", this.declared.name, { ...entry, isDelivered: false }])
    // A message with a time to live of 0 still reaches a consumer that is ready.
    this.#deliverReady(entry)
    const before = this.#ready.length
    this.#enforceLength()
    // A classic queue checks only a new first message. Like RabbitMQ, it overlooks a new one of higher priority.
    if (this.#isQuorum || this.#ready.length === 1 || this.#ready.length < before) this.#dropExpired()
    this.#scheduleTimer()
    return true
  }

  get(): Entry | undefined {
    if (this.#isQuorum && this.declared.arguments?.["x-single-active-consumer"] === true) {
      const why = "basic.get operations are not supported by quorum queues with single active consumer"
      refuse(405, `cannot obtain access to locked ${describeResource("queue", this.declared.name)}. ${why}`)
    }
    if (this.#isQuorum) this.#dropExpired()
    const entry = this.#take()
    if (entry !== undefined) this.#recordDelivery(entry)
    this.#dropExpired()
    this.markUsed()
    return entry
  }

  checkConsumer(): void {}

  consume(consumer: Consumer): void {
    this.#consumers.add(consumer)
    this.#deliverReady()
    this.#scheduleTimer()
  }

  cancel(consumer: Consumer): void {
    this.#remove([consumer])
    // As in RabbitMQ, a classic queue serves the next single active consumer only with its next event.
    if (this.#isQuorum) this.#deliverReady()
    this.#scheduleTimer()
  }

  settle(entry: Entry, how: "ack" | "requeue" | "reject", consumer: Consumer | undefined): void {
    if (how === "ack") this.#discard(entry)
    else if (how === "reject") this.#deadLetter(entry, "rejected")
    else this.#returnEntry("requeue", entry)
    if (consumer !== undefined) this.#consumers.onSettled(consumer)
    this.#advance(how === "requeue")
  }

  onChannelClosed(consumers: ReadonlyArray<Consumer>, unsettled: ReadonlyArray<Entry>): void {
    for (const entry of unsettled) this.#returnEntry("recover", entry)
    this.#remove(consumers)
    this.#advance(unsettled.length > 0)
  }

  deliveryHeaders(entry: Entry, how: "get" | "deliver"): Fields | undefined {
    return this.#isQuorum && (entry.returnCount > 0 || how === "get")
      ? { "x-delivery-count": entry.returnCount }
      : undefined
  }

  onTimer(): void {
    this.#dropExpired()
    this.#scheduleTimer()
    const unused = this.#queueExpiresAt()
    if (unused !== undefined && unused <= this.#host.now()) this.#host.deleteQueue(this)
  }

  restart(): void {
    const entries: Array<Entry> = []
    for (let entry = this.#take(); entry !== undefined; entry = this.#take()) entries.push(entry)
    for (const entry of entries) {
      if (this.#isQuorum || entry.message.properties.persistent !== false) this.#add("add", entry)
      else this.#addHeldBytes(-memorySize(entry.message))
    }
    this.markUsed()
  }

  /** Takes over the messages of an earlier process. Those that a consumer had return to the queue. */
  restore(stored: Iterable<StoredEntry>): void {
    for (const { isDelivered, ...entry } of Array.from(stored).sort((a, b) => a.position - b.position)) {
      this.#position = entry.position + 1
      this.#addHeldBytes(memorySize(entry.message))
      if (isDelivered) this.#returnEntry("recover", entry)
      else this.#add("add", entry)
    }
    this.#dropExpired()
    this.#scheduleTimer()
  }

  close(): void {
    this.#addHeldBytes(-this.#heldBytes)
    this.#host.wakeAt(this, undefined)
    for (const consumer of this.#consumers.all.slice()) consumer.onCancelled()
  }

  #add(where: "add" | "requeue" | "recover", entry: Entry): void {
    this.#readyBytes += size(entry)
    this.#ready[where](entry)
  }

  #take(): Entry | undefined {
    const entry = this.#ready.shift()
    if (entry === undefined) return undefined
    this.#readyBytes -= size(entry)
    const isBelow = (limit: number, used: number) => limit === Infinity || used <= Math.trunc(limit * reopenFraction)
    if (this.#isFull && isBelow(this.#maxLength, this.#ready.length) && isBelow(this.#maxBytes, this.#readyBytes)) {
      this.#isFull = false
    }
    return entry
  }

  #advance(hasReturned: boolean): void {
    if (hasReturned && !this.#isQuorum) {
      this.#enforceLength()
      this.#dropExpired()
    }
    this.#deliverReady()
    if (this.#isQuorum) this.#enforceLength()
    this.#scheduleTimer()
  }

  /** Quorum queues drop expired messages before a delivery, classic queues afterwards. `exempt` is not dropped. */
  #deliverReady(exempt?: Entry): void {
    for (;;) {
      if (this.#isQuorum) this.#dropExpired(exempt)
      if (this.#ready.length === 0) return
      const consumer = this.#consumers.next()
      if (consumer === undefined) return
      const entry = this.#take()
      if (entry === undefined) return
      consumer.unsettled++
      this.#recordDelivery(entry)
      consumer.deliver(entry)
      if (!this.#isQuorum) this.#dropExpired()
    }
  }

  #returnEntry(where: "requeue" | "recover", entry: Entry): void {
    entry.returnCount++
    if (entry.returnCount > this.#deliveryLimit) {
      this.#deadLetter(entry, "delivery_limit")
      return
    }
    this.#add(where, entry)
    if (this.#isRecorded(entry)) {
      this.#record?.(["returned", this.declared.name, entry.position, entry.returnCount])
    }
  }

  #remove(consumers: ReadonlyArray<Consumer>): void {
    const removed = consumers.filter((consumer) => this.#consumers.remove(consumer))
    if (removed.length === 0 || this.#consumers.size > 0) return
    this.#lastUsedAt = this.#host.now()
    if (this.declared.autoDelete === true) this.#host.deleteQueue(this)
  }

  #discard(entry: Entry): void {
    this.#addHeldBytes(-memorySize(entry.message))
    if (this.#isRecorded(entry)) this.#record?.(["removed", this.declared.name, entry.position])
  }

  #isRecorded({ message }: Entry): boolean {
    return this.#record !== undefined && (this.#isQuorum || message.properties.persistent !== false)
  }

  #recordDelivery(entry: Entry): void {
    if (this.#isRecorded(entry)) this.#record?.(["delivered", this.declared.name, entry.position])
  }

  #deadLetter(entry: Entry, cause: DeathReason): void {
    this.#discard(entry)
    this.#host.deadLetter(entry.message, cause, this)
  }

  /** Only the first message of a queue can expire. Expired messages after it stay in the queue. */
  #dropExpired(exempt?: Entry): void {
    const now = this.#host.now()
    for (;;) {
      const first = this.#ready.first
      if (first?.expiresAt === undefined || first.expiresAt > now || first === exempt) {
        this.#nextMessageExpiry = first?.expiresAt
        return
      }
      const entry = this.#take()
      if (entry !== undefined) this.#deadLetter(entry, "expired")
    }
  }

  #exceeds(length: number, bytes: number): boolean {
    return length > this.#maxLength || bytes > this.#maxBytes
  }

  #refuses(message: Message): boolean {
    if (this.#overflow === "drop-head") return false
    if (this.#isQuorum) return this.#isFull
    return this.#exceeds(this.#ready.length + 1, this.#readyBytes + message.content.byteLength)
  }

  #enforceLength(): void {
    if (this.#overflow !== "drop-head") {
      // A quorum queue notices that it is full only after it has accepted one message too many.
      this.#isFull ||= this.#isQuorum && this.#exceeds(this.#ready.length, this.#readyBytes)
      return
    }
    while (this.#exceeds(this.#ready.length, this.#readyBytes)) {
      const entry = this.#take()
      if (entry === undefined) return
      this.#deadLetter(entry, "maxlen")
    }
  }

  #addHeldBytes(bytes: number): void {
    this.#heldBytes += bytes
    this.#host.addHeldBytes(bytes)
  }

  #queueExpiresAt(): number | undefined {
    return this.#expiresUnused === undefined || this.#consumers.size > 0
      ? undefined
      : this.#lastUsedAt + this.#expiresUnused
  }

  #scheduleTimer(): void {
    const next = Math.min(this.#nextMessageExpiry ?? Infinity, this.#queueExpiresAt() ?? Infinity)
    this.#host.wakeAt(this, next === Infinity ? undefined : next)
  }
}
