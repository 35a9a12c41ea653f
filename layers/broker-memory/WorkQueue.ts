import type { Fields, Queue } from "../../src/services/Broker.ts"
import { type Consumer, Consumers } from "./Consumers.ts"
import type { Cause } from "./DeadLetters.ts"
import { type Host, type LiveQueue, textOf, wholeOf } from "./Host.ts"
import { type Message, weight } from "./Message.ts"
import { kindOf } from "./QueueArguments.ts"
import * as ReadyMessages from "./ReadyMessages.ts"

type Entry = ReadyMessages.Entry

/** A quorum queue that was full takes messages again when it is this far below its limit. */
const roomAgain = 0.8

const size = ({ message }: Entry) => message.content.byteLength

/** A classic or a quorum queue: every message goes to one consumer, until it is settled. */
export class WorkQueue implements LiveQueue {
  readonly declared: Queue
  readonly #host: Host
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
  #held = 0
  #position = 0
  #usedAt: number
  #isFull = false

  constructor(declared: Queue, host: Host) {
    this.declared = declared
    this.#host = host
    this.#isQuorum = kindOf(declared) === "quorum"
    this.#consumers = new Consumers({
      singleActive: declared.arguments?.["x-single-active-consumer"] === true,
      parksAtOnce: this.#isQuorum
    })
    this.#ttl = wholeOf(declared, "x-message-ttl")
    this.#expiresUnused = wholeOf(declared, "x-expires")
    this.#maxPriority = wholeOf(declared, "x-max-priority") ?? 0
    this.#maxLength = wholeOf(declared, "x-max-length") ?? Infinity
    this.#maxBytes = wholeOf(declared, "x-max-length-bytes") ?? Infinity
    const overflow = textOf(declared, "x-overflow") ?? "drop-head"
    this.#overflow = this.#isQuorum && overflow === "reject-publish-dlx" ? "drop-head" : overflow
    const limit = wholeOf(declared, "x-delivery-limit") ?? -1
    this.#deliveryLimit = limit < 0 ? Infinity : limit
    this.#ready = this.#isQuorum ? ReadyMessages.quorum() : ReadyMessages.classic(this.#maxPriority)
    this.#usedAt = host.now()
    this.#rest()
  }

  get messages(): number {
    this.#dropExpired()
    // A classic queue counts a question as a use.
    if (!this.#isQuorum) this.touch()
    return this.#ready.length
  }

  get consumers(): number {
    return this.#consumers.size
  }

  touch(): void {
    this.#usedAt = this.#host.now()
    this.#rest()
  }

  enqueue(message: Message): boolean {
    this.#dropExpired()
    if (this.#refuses(message)) {
      if (this.#overflow === "reject-publish-dlx") this.#host.bury(message, "maxlen", this)
      return false
    }
    const lifetime = Math.min(this.#ttl ?? Infinity, message.properties.expiration ?? Infinity)
    const entry: Entry = {
      message,
      position: this.#position++,
      priority: Math.min(message.properties.priority ?? 0, this.#maxPriority),
      expiresAt: lifetime === Infinity ? undefined : this.#host.now() + lifetime,
      returns: 0
    }
    this.#hold(weight(message))
    this.#add("add", entry)
    // Served before it can expire: a message without any lifetime reaches a consumer that waits for it.
    this.#serve()
    this.#dropExpired()
    this.#trim()
    this.#rest()
    return true
  }

  get(): Entry | undefined {
    this.#dropExpired()
    const entry = this.#take()
    this.touch()
    return entry
  }

  checkConsumer(): void {}

  consume(consumer: Consumer): void {
    this.#dropExpired()
    this.#consumers.add(consumer)
    this.#serve()
    this.#rest()
  }

  cancel(consumer: Consumer): void {
    this.#remove([consumer])
    // A classic queue hands nothing to the next single active consumer before something else happens to it.
    if (this.#isQuorum) this.#serve()
    this.#rest()
  }

  settle(entry: Entry, how: "ack" | "requeue" | "reject", consumer: Consumer | undefined): void {
    this.#dropExpired()
    if (how === "ack") this.#hold(-weight(entry.message))
    else if (how === "reject") this.#drop(entry, "rejected")
    else this.#return("requeue", entry)
    if (consumer !== undefined) this.#consumers.settled(consumer)
    if (!this.#isQuorum) this.#trim()
    this.#dropExpired()
    this.#serve()
    this.#trim()
    this.#rest()
  }

  leave(consumers: ReadonlyArray<Consumer>, unsettled: ReadonlyArray<Entry>): void {
    for (const entry of unsettled) this.#return("recover", entry)
    this.#remove(consumers)
    this.#dropExpired()
    this.#serve()
    this.#trim()
    this.#rest()
  }

  headersOf(entry: Entry, how: "get" | "deliver"): Fields | undefined {
    return this.#isQuorum && (entry.returns > 0 || how === "get") ? { "x-delivery-count": entry.returns } : undefined
  }

  tick(): void {
    this.#dropExpired()
    this.#rest()
    const unused = this.#expiresAt()
    if (unused !== undefined && unused <= this.#host.now()) this.#host.vanish(this)
  }

  restart(): void {
    const entries: Array<Entry> = []
    for (let entry = this.#take(); entry !== undefined; entry = this.#take()) entries.push(entry)
    for (const entry of entries) {
      if (this.#isQuorum || entry.message.properties.persistent !== false) this.#add("add", entry)
      else this.#hold(-weight(entry.message))
    }
    this.touch()
  }

  close(): void {
    this.#hold(-this.#held)
    this.#host.wakeAt(this, undefined)
    for (const consumer of this.#consumers.all.slice()) consumer.cancelled()
  }

  #add(where: "add" | "requeue" | "recover", entry: Entry): void {
    this.#readyBytes += size(entry)
    this.#ready[where](entry)
  }

  #take(): Entry | undefined {
    const entry = this.#ready.shift()
    if (entry === undefined) return undefined
    this.#readyBytes -= size(entry)
    const reached = (limit: number, used: number) => limit === Infinity || used <= Math.trunc(limit * roomAgain)
    if (this.#isFull && reached(this.#maxLength, this.#ready.length) && reached(this.#maxBytes, this.#readyBytes)) {
      this.#isFull = false
    }
    return entry
  }

  #serve(): void {
    while (this.#ready.length > 0) {
      const consumer = this.#consumers.next()
      if (consumer === undefined) return
      const entry = this.#take()
      if (entry === undefined) return
      consumer.unsettled++
      consumer.deliver(entry)
    }
  }

  #return(where: "requeue" | "recover", entry: Entry): void {
    entry.returns++
    if (entry.returns > this.#deliveryLimit) this.#drop(entry, "delivery_limit")
    else this.#add(where, entry)
  }

  #remove(consumers: ReadonlyArray<Consumer>): void {
    const removed = consumers.filter((consumer) => this.#consumers.remove(consumer))
    if (removed.length === 0 || this.#consumers.size > 0) return
    this.#usedAt = this.#host.now()
    if (this.declared.autoDelete === true) this.#host.vanish(this)
  }

  #drop(entry: Entry, cause: Cause): void {
    this.#hold(-weight(entry.message))
    this.#host.bury(entry.message, cause, this)
  }

  /** Only from the front: a message behind one that lives longer waits for it, dead or not. */
  #dropExpired(): void {
    const now = this.#host.now()
    for (;;) {
      const expiresAt = this.#ready.first?.expiresAt
      if (expiresAt === undefined || expiresAt > now) return
      const entry = this.#take()
      if (entry !== undefined) this.#drop(entry, "expired")
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

  #trim(): void {
    if (this.#overflow !== "drop-head") {
      // A quorum queue learns that it is full when it is, and has then one message too many.
      this.#isFull ||= this.#isQuorum && this.#exceeds(this.#ready.length, this.#readyBytes)
      return
    }
    while (this.#exceeds(this.#ready.length, this.#readyBytes)) {
      const entry = this.#take()
      if (entry === undefined) return
      this.#drop(entry, "maxlen")
    }
  }

  #hold(bytes: number): void {
    this.#held += bytes
    this.#host.holds(bytes)
  }

  #expiresAt(): number | undefined {
    return this.#expiresUnused === undefined || this.#consumers.size > 0
      ? undefined
      : this.#usedAt + this.#expiresUnused
  }

  #rest(): void {
    const next = Math.min(this.#ready.first?.expiresAt ?? Infinity, this.#expiresAt() ?? Infinity)
    this.#host.wakeAt(this, next === Infinity ? undefined : next)
  }
}
