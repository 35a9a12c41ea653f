import type { Binding, Exchange, Queue } from "../../src/services/Broker.ts"
import { type ClientConnection, EventQueue } from "./ClientConnection.ts"
import type { DurableState, Step } from "./DurableState.ts"
import { Exchanges } from "./Exchanges.ts"
import { type Change, survivesRestart } from "./queues/Changes.ts"
import { describeResource, refuse, refuseMissing } from "./queues/ChannelException.ts"
import { type DeathReason, deadLetterOf, isCycle } from "./queues/DeadLetters.ts"
import { type LiveQueue, type QueueHost, textArgument } from "./queues/LiveQueue.ts"
import type { Message } from "./queues/Message.ts"
import { PendingDeadLetters } from "./queues/PendingDeadLetters.ts"
import * as QueueArguments from "./queues/QueueArguments.ts"
import { StreamLog } from "./queues/StreamLog.ts"
import type { Timers } from "./queues/Timers.ts"
import { WorkQueue } from "./queues/WorkQueue.ts"

interface BrokerStateOptions {
  readonly now: () => number
  readonly timers: Timers
  /** Runs a task in a later tick of the event loop. */
  readonly defer: (task: () => void) => void
  /** Publishes are blocked while messages take more than this number of bytes. */
  readonly memoryLimit: number
  /** Keeps changes for the next start. Without it, all is lost at exit. */
  readonly storage?: Storage | undefined
}

interface Storage {
  readonly record: (step: Step) => void
  /** Stores all recorded steps. If this returns false, it calls `retry` later. */
  readonly commit: (retry: () => void) => boolean
}

export type RoutingResult = "taken" | "refused" | "unroutable"

/** The state of the in-memory broker. Changes are synchronous. `events` delivers their effects to clients. */
export class BrokerState {
  readonly events: EventQueue
  readonly now: () => number
  readonly timers: Timers
  readonly #exchanges = new Exchanges()
  readonly #queues = new Map<string, LiveQueue>()
  readonly #owners = new Map<string, ClientConnection>()
  readonly #connections = new Set<ClientConnection>()
  readonly #host: QueueHost
  readonly #pendingDeadLetters: PendingDeadLetters
  readonly #memoryLimit: number
  readonly #storage: Storage | undefined
  readonly #consequences: Array<() => void> = []
  #changes: Array<Change> = []
  #depth = 0
  #heldBytes = 0
  #blockedBy: string | undefined
  #alarm: string | undefined
  #cutOff: { readonly name: string | undefined } | undefined

  constructor({ defer, memoryLimit, now, storage, timers }: BrokerStateOptions) {
    this.events = new EventQueue(defer, storage?.commit ?? (() => true))
    this.now = now
    this.timers = timers
    this.#memoryLimit = memoryLimit
    this.#storage = storage
    this.#host = {
      now,
      wakeAt: (queue, time) => {
        if (time === undefined) timers.clear(queue)
        else timers.set(queue, time, () => this.atomically(() => queue.onTimer()))
      },
      deadLetter: (message, cause, queue) => this.#consequences.push(() => this.#deadLetter(message, cause, queue)),
      deleteQueue: (queue) => this.#consequences.push(() => this.#deleteQueue(queue)),
      addHeldBytes: (bytes) => {
        this.#heldBytes += bytes
      },
      record: storage && ((change) => this.#changes.push(change))
    }
    this.#pendingDeadLetters = new PendingDeadLetters(this.#host, timers, (change) => this.atomically(change))
  }

  /** Runs a change and its consequences, such as dead-lettering, before other code can see the state. */
  atomically<A>(change: () => A): A {
    this.#depth++
    try {
      return change()
    } finally {
      if (this.#depth === 1) {
        for (const next of this.#consequences) next()
        this.#consequences.length = 0
        this.#updateAlarm()
        if (this.#changes.length > 0) {
          this.#storage?.record(this.#changes)
          this.#changes = []
        }
      }
      this.#depth--
    }
  }

  acceptsConnection(name: string): boolean {
    return this.#cutOff === undefined || (this.#cutOff.name !== undefined && this.#cutOff.name !== name)
  }

  attach(connection: ClientConnection): void {
    this.#connections.add(connection)
    connection.alarm = this.#alarm
    connection.onEnd(() => {
      this.#connections.delete(connection)
      this.atomically(() => {
        for (const [name, owner] of this.#owners) if (owner === connection) this.#removeQueue(name)
      })
    })
  }

  drop(reason: string, name?: string): void {
    for (const connection of Array.from(this.#connections))
      if (name === undefined || connection.name === name) connection.end(reason)
  }

  cut(name?: string): void {
    this.#cutOff = { name }
    this.drop("The connection was lost", name)
  }

  restore(): void {
    this.#cutOff = undefined
  }

  restart(): void {
    this.drop("CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'")
    this.atomically(() => {
      this.#exchanges.restart()
      for (const [name, queue] of Array.from(this.#queues)) {
        if (queue.declared.durable === false) this.#removeQueue(name)
        else queue.restart()
      }
    })
  }

  /** Takes over what earlier processes stored, before any client connects. */
  takeOver({ bindings, exchanges, queues }: DurableState): void {
    for (const exchange of exchanges.values()) this.#exchanges.declare(exchange)
    for (const { declared } of queues.values()) this.#queues.set(declared.name, this.#createQueue(declared))
    for (const binding of bindings.values()) this.#exchanges.bind(binding)
    this.atomically(() => {
      for (const [name, { entries, held, offsets }] of Array.from(queues)) {
        const queue = this.#queues.get(name)
        if (queue instanceof StreamLog) queue.restore(offsets)
        if (queue instanceof WorkQueue) {
          for (const letter of held.values()) {
            this.#pendingDeadLetters.restore(letter, queue, this.#forwardOf(letter.message, letter.cause))
          }
          queue.restore(Array.from(entries.values()))
        }
      }
    })
  }

  block(reason: string | undefined): void {
    this.#blockedBy = reason
    this.#updateAlarm()
  }

  declareExchange(exchange: Exchange): void {
    if (this.#exchanges.declare(exchange) && this.#exchanges.isDurable(exchange.name)) {
      this.#host.record?.(["exchange", exchange])
    }
  }

  /** Returns the difference in RabbitMQ's wording, or `undefined` if there is none. */
  exchangeDifference(exchange: Exchange): string | undefined {
    if (!this.#exchanges.has(exchange.name)) return refuseMissing("exchange", exchange.name)
    return this.#exchanges.difference(exchange)
  }

  declareQueue(queue: Queue, connection: ClientConnection): void {
    const known = this.#queues.get(queue.name)
    if (known === undefined) {
      QueueArguments.check(queue)
      const { exclusive } = queue
      const declared = { ...queue, autoDelete: queue.autoDelete ?? false }
      this.#queues.set(queue.name, this.#createQueue(declared))
      if (survivesRestart(declared)) this.#host.record?.(["queue", declared])
      if (exclusive === true) this.#owners.set(queue.name, connection)
      return
    }
    const differs = this.queueDifference(queue, connection)
    if (differs !== undefined) refuse(406, differs)
    known.markUsed()
  }

  queueDifference(queue: Queue, connection: ClientConnection): string | undefined {
    const known = this.queue(queue.name, connection)
    if ((queue.exclusive ?? false) !== (known.declared.exclusive ?? false)) refuseLocked(queue.name)
    return QueueArguments.describeInequivalence(queue, known.declared)
  }

  bind(binding: Binding, connection: ClientConnection): void {
    const { declared } = this.queue(binding.queue, connection)
    const isNew = this.#exchanges.bind(binding)
    if (isNew && survivesRestart(declared) && this.#exchanges.isDurable(binding.exchange)) {
      this.#host.record?.(["bound", binding])
    }
  }

  /** Throws if the queue does not exist, or is exclusive to another connection. */
  queue(name: string, connection: ClientConnection): LiveQueue {
    const owner = this.#owners.get(name)
    if (owner !== undefined && owner !== connection) refuseLocked(name)
    return this.#queues.get(name) ?? refuseMissing("queue", name)
  }

  kindOf(name: string): QueueArguments.QueueKind | undefined {
    const known = this.#queues.get(name)
    return known === undefined ? undefined : QueueArguments.kindOf(known.declared)
  }

  deleteQueue(name: string, connection: ClientConnection): void {
    if (this.#queues.has(name)) this.#deleteQueue(this.queue(name, connection))
  }

  deleteExchange(name: string): void {
    const isDurable = this.#exchanges.isDurable(name)
    this.#exchanges.delete(name)
    if (isDurable) this.#host.record?.(["exchange-deleted", name])
  }

  publish(message: Message): RoutingResult {
    if (!this.#exchanges.has(message.exchange)) refuseMissing("exchange", message.exchange)
    const queues = this.#targetQueues(message)
    if (queues.length === 0) return "unroutable"
    return queues.map((queue) => queue.enqueue(message)).every((taken) => taken) ? "taken" : "refused"
  }

  #createQueue(declared: Queue): LiveQueue {
    return QueueArguments.kindOf(declared) === "stream"
      ? new StreamLog(declared, this.#host)
      : new WorkQueue(declared, this.#host)
  }

  #targetQueues(message: Message): ReadonlyArray<LiveQueue> {
    return Array.from(this.#exchanges.route(message)).flatMap((name) => this.#queues.get(name) ?? [])
  }

  #deadLetter(message: Message, cause: DeathReason, queue: LiveQueue): void {
    const { declared } = queue
    const exchange = textArgument(declared, "x-dead-letter-exchange")
    if (exchange === undefined) return
    const routingKey = textArgument(declared, "x-dead-letter-routing-key")
    const dead = deadLetterOf(message, { cause, queue: declared.name, exchange, routingKey, now: this.now() })
    this.#pendingDeadLetters.forward(dead, cause, queue, this.#forwardOf(dead, cause))
  }

  #forwardOf(dead: Message, cause: DeathReason): () => boolean {
    const reached = new Set<LiveQueue>()
    return () => {
      const targets = this.#exchanges.has(dead.exchange) ? this.#targetQueues(dead) : []
      for (const target of targets) {
        const isEndless = cause !== "rejected" && isCycle(dead, target.declared.name)
        if (!reached.has(target) && !isEndless && target.enqueue(dead)) reached.add(target)
      }
      return targets.length > 0 && targets.every((target) => reached.has(target))
    }
  }

  #deleteQueue(queue: LiveQueue): void {
    if (this.#queues.get(queue.declared.name) === queue) this.#removeQueue(queue.declared.name)
  }

  #removeQueue(name: string): void {
    const queue = this.#queues.get(name)
    this.#queues.delete(name)
    this.#owners.delete(name)
    this.#exchanges.unbind(name)
    if (queue === undefined) return
    if (survivesRestart(queue.declared)) this.#host.record?.(["queue-deleted", name])
    this.#pendingDeadLetters.forget(queue)
    queue.close()
  }

  #updateAlarm(): void {
    const alarm = this.#blockedBy ?? (this.#heldBytes > this.#memoryLimit ? "low on memory" : undefined)
    if (alarm === this.#alarm) return
    this.#alarm = alarm
    for (const connection of this.#connections) connection.alarm = alarm
  }
}

const refuseLocked = (name: string): never =>
  refuse(
    405,
    `cannot obtain exclusive access to locked ${describeResource("queue", name)}. It could be originally declared on another ` +
      "connection or the exclusive property value does not match that of the original declaration."
  )
