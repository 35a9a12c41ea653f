import type { Binding, Exchange, Queue } from "../../src/services/Broker.ts"
import { Exchanges } from "./Exchanges.ts"
import { type Cause, deadLetter, isCycle } from "./queues/DeadLetters.ts"
import { HeldBack } from "./queues/HeldBack.ts"
import { type Host, type LiveQueue, textOf } from "./queues/Host.ts"
import type { Message } from "./queues/Message.ts"
import * as QueueArguments from "./queues/QueueArguments.ts"
import { at, missing, refuse } from "./queues/Refusal.ts"
import { StreamLog } from "./queues/StreamLog.ts"
import type { Timers } from "./queues/Timers.ts"
import { WorkQueue } from "./queues/WorkQueue.ts"
import { type Line, Wire } from "./Wire.ts"

export interface Options {
  readonly now: () => number
  readonly timers: Timers
  /** Runs a task in a later turn. */
  readonly later: (task: () => void) => void
  /** Bytes; past it the broker takes no publishes. */
  readonly memoryLimit: number
}

export type Routed = "taken" | "refused" | "unroutable"

/** The broker's state. Everything here happens at once; what clients see of it travels by the wire. */
export class Node {
  readonly wire: Wire
  readonly now: () => number
  readonly timers: Timers
  readonly #exchanges = new Exchanges()
  readonly #queues = new Map<string, LiveQueue>()
  readonly #owners = new Map<string, Line>()
  readonly #lines = new Set<Line>()
  readonly #host: Host
  readonly #heldBack: HeldBack
  readonly #memoryLimit: number
  readonly #afterwards: Array<() => void> = []
  #depth = 0
  #held = 0
  #blockedBy: string | undefined
  #alarm: string | undefined
  #refuses: { readonly name: string | undefined } | undefined

  constructor({ later, memoryLimit, now, timers }: Options) {
    this.wire = new Wire(later)
    this.now = now
    this.timers = timers
    this.#memoryLimit = memoryLimit
    this.#host = {
      now,
      wakeAt: (queue, time) => {
        if (time === undefined) timers.clear(queue)
        else timers.set(queue, time, () => this.step(() => queue.tick()))
      },
      bury: (message, cause, queue) => this.#afterwards.push(() => this.#bury(message, cause, queue)),
      vanish: (queue) => this.#afterwards.push(() => this.#drop(queue)),
      holds: (bytes) => {
        this.#held += bytes
      }
    }
    this.#heldBack = new HeldBack(this.#host, timers, (change) => this.step(change))
  }

  /** One change of the state, with all that follows from it before anybody else has a turn. */
  step<A>(change: () => A): A {
    this.#depth++
    try {
      return change()
    } finally {
      if (this.#depth === 1) {
        // It grows while it is worked through.
        for (const next of this.#afterwards) next()
        this.#afterwards.length = 0
        this.#watchMemory()
      }
      this.#depth--
    }
  }

  accepts(name: string): boolean {
    return this.#refuses === undefined || (this.#refuses.name !== undefined && this.#refuses.name !== name)
  }

  attach(line: Line): void {
    this.#lines.add(line)
    line.alarm = this.#alarm
    line.onEnd(() => {
      this.#lines.delete(line)
      this.step(() => {
        for (const [name, owner] of this.#owners) if (owner === line) this.#forget(name)
      })
    })
  }

  /** Only the lines of that name, or all. */
  drop(reason: string, name?: string): void {
    for (const line of Array.from(this.#lines)) if (name === undefined || line.name === name) line.end(reason)
  }

  cut(name?: string): void {
    this.#refuses = { name }
    this.drop("The connection was lost", name)
  }

  restore(): void {
    this.#refuses = undefined
  }

  restart(): void {
    this.drop("CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'")
    this.step(() => {
      this.#exchanges.restart()
      for (const [name, queue] of Array.from(this.#queues)) {
        if (queue.declared.durable === false) this.#forget(name)
        else queue.restart()
      }
    })
  }

  block(reason: string | undefined): void {
    this.#blockedBy = reason
    this.#watchMemory()
  }

  declareExchange(exchange: Exchange): void {
    this.#exchanges.declare(exchange)
  }

  /** In the broker's words; `undefined`: it is the same. */
  exchangeDifference(exchange: Exchange): string | undefined {
    if (!this.#exchanges.has(exchange.name)) return missing("exchange", exchange.name)
    return this.#exchanges.difference(exchange)
  }

  declareQueue(queue: Queue, line: Line): void {
    const known = this.#queues.get(queue.name)
    if (known === undefined) {
      QueueArguments.check(queue)
      const { exclusive } = queue
      this.#queues.set(queue.name, this.#make({ ...queue, autoDelete: queue.autoDelete ?? false }))
      if (exclusive === true) this.#owners.set(queue.name, line)
      return
    }
    const differs = this.queueDifference(queue, line)
    if (differs !== undefined) refuse(406, differs)
    known.touch()
  }

  queueDifference(queue: Queue, line: Line): string | undefined {
    const known = this.queue(queue.name, line)
    if ((queue.exclusive ?? false) !== (known.declared.exclusive ?? false)) locked(queue.name)
    return QueueArguments.inequivalent(queue, known.declared)
  }

  bind(binding: Binding, line: Line): void {
    this.queue(binding.queue, line)
    this.#exchanges.bind(binding)
  }

  /** Missing, or another connection's own: refused. */
  queue(name: string, line: Line): LiveQueue {
    const owner = this.#owners.get(name)
    if (owner !== undefined && owner !== line) locked(name)
    return this.#queues.get(name) ?? missing("queue", name)
  }

  kindOf(name: string): QueueArguments.QueueKind | undefined {
    const known = this.#queues.get(name)
    return known === undefined ? undefined : QueueArguments.kindOf(known.declared)
  }

  deleteQueue(name: string, line: Line): void {
    if (this.#queues.has(name)) this.#drop(this.queue(name, line))
  }

  deleteExchange(name: string): void {
    this.#exchanges.delete(name)
  }

  publish(message: Message): Routed {
    if (!this.#exchanges.has(message.exchange)) missing("exchange", message.exchange)
    const queues = this.#targets(message)
    if (queues.length === 0) return "unroutable"
    return queues.map((queue) => queue.enqueue(message)).every((taken) => taken) ? "taken" : "refused"
  }

  #make(declared: Queue): LiveQueue {
    return QueueArguments.kindOf(declared) === "stream"
      ? new StreamLog(declared, this.#host)
      : new WorkQueue(declared, this.#host)
  }

  #targets(message: Message): ReadonlyArray<LiveQueue> {
    return Array.from(this.#exchanges.route(message)).flatMap((name) => this.#queues.get(name) ?? [])
  }

  #bury(message: Message, cause: Cause, queue: LiveQueue): void {
    const { declared } = queue
    const exchange = textOf(declared, "x-dead-letter-exchange")
    if (exchange === undefined) return
    const routingKey = textOf(declared, "x-dead-letter-routing-key")
    const dead = deadLetter(message, { cause, queue: declared.name, exchange, routingKey, now: this.now() })
    const done = new Set<LiveQueue>()
    this.#heldBack.forward(dead, queue, () => {
      const targets = this.#exchanges.has(exchange) ? this.#targets(dead) : []
      for (const target of targets) {
        const isEndless = cause !== "rejected" && isCycle(dead, target.declared.name)
        if (!done.has(target) && !isEndless && target.enqueue(dead)) done.add(target)
      }
      return targets.length > 0 && targets.every((target) => done.has(target))
    })
  }

  #drop(queue: LiveQueue): void {
    if (this.#queues.get(queue.declared.name) === queue) this.#forget(queue.declared.name)
  }

  #forget(name: string): void {
    const queue = this.#queues.get(name)
    this.#queues.delete(name)
    this.#owners.delete(name)
    this.#exchanges.unbind(name)
    if (queue === undefined) return
    this.#heldBack.forget(queue)
    queue.close()
  }

  #watchMemory(): void {
    const alarm = this.#blockedBy ?? (this.#held > this.#memoryLimit ? "low on memory" : undefined)
    if (alarm === this.#alarm) return
    this.#alarm = alarm
    for (const line of this.#lines) line.alarm = alarm
  }
}

const locked = (name: string): never =>
  refuse(
    405,
    `cannot obtain exclusive access to locked ${at("queue", name)}. It could be originally declared on another ` +
      "connection or the exclusive property value does not match that of the original declaration."
  )
