import type { Fields, Queue } from "../../../src/services/Broker.ts"
import { type Consumer, Consumers } from "./Consumers.ts"
import type { Cause } from "./DeadLetters.ts"
import { type Host, type LiveQueue, textOf, wholeOf } from "./Host.ts"
import { type Message, weight } from "./Message.ts"
import { kindOf } from "./QueueArguments.ts"
import * as ReadyMessages from "./ReadyMessages.ts"
import { at, refuse } from "./Refusal.ts"

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
  /** When it looks for the expired again. */
  #expiryDue: number | undefined

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
    this.#ready = this.#isQuorum
      ? ReadyMessages.quorum(this.#deliveryLimit !== Infinity)
      : ReadyMessages.classic(this.#maxPriority)
    this.#usedAt = host.now()
    this.#rest()
  }

  get messages(): number {
    if (this.#isQuorum) this.#dropExpired()
    // A classic queue counts a question as a use.
    else this.touch()
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
    if (this.#isQuorum) this.#dropExpired()
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
    // A message without any lifetime reaches a consumer that waits for it.
    this.#serve(entry)
    const before = this.#ready.length
    this.#trim()
    // To save time, a classic queue looks only when the front can have changed; it forgets that priorities change it.
    if (this.#isQuorum || this.#ready.length === 1 || this.#ready.length < before) this.#dropExpired()
    this.#rest()
    return true
  }

  get(): Entry | undefined {
    if (this.#isQuorum && this.declared.arguments?.["x-single-active-consumer"] === true) {
      const why = "basic.get operations are not supported by quorum queues with single active consumer"
      refuse(405, `cannot obtain access to locked ${at("queue", this.declared.name)}. ${why}`)
    }
    if (this.#isQuorum) this.#dropExpired()
    const entry = this.#take()
    this.#dropExpired()
    this.touch()
    return entry
  }

  checkConsumer(): void {}

  consume(consumer: Consumer): void {
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
    if (how === "ack") this.#hold(-weight(entry.message))
    else if (how === "reject") this.#drop(entry, "rejected")
    else this.#return("requeue", entry)
    if (consumer !== undefined) this.#consumers.settled(consumer)
    this.#run(how === "requeue")
  }

  leave(consumers: ReadonlyArray<Consumer>, unsettled: ReadonlyArray<Entry>): void {
    for (const entry of unsettled) this.#return("recover", entry)
    this.#remove(consumers)
    this.#run(unsettled.length > 0)
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

  #run(came: boolean): void {
    if (came && !this.#isQuorum) {
      this.#trim()
      this.#dropExpired()
    }
    this.#serve()
    if (this.#isQuorum) this.#trim()
    this.#rest()
  }

  /**
   * A quorum queue looks for the expired before it hands over, a classic one after. `spared`: may be handed over, expired
   * or not.
   */
  #serve(spared?: Entry): void {
    for (;;) {
      if (this.#isQuorum) this.#dropExpired(spared)
      if (this.#ready.length === 0) return
      const consumer = this.#consumers.next()
      if (consumer === undefined) return
      const entry = this.#take()
      if (entry === undefined) return
      consumer.unsettled++
      consumer.deliver(entry)
      if (!this.#isQuorum) this.#dropExpired()
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
  #dropExpired(spared?: Entry): void {
    const now = this.#host.now()
    for (;;) {
      const first = this.#ready.first
      if (first?.expiresAt === undefined || first.expiresAt > now || first === spared) {
        this.#expiryDue = first?.expiresAt
        return
      }
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
    const next = Math.min(this.#expiryDue ?? Infinity, this.#expiresAt() ?? Infinity)
    this.#host.wakeAt(this, next === Infinity ? undefined : next)
  }
}
