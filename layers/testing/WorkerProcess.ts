import { type Duration, Effect, type Exit, Fiber } from "effect"
import type { Delivery, Settled, Settlement } from "../../src/services/Broker.ts"
import type { History } from "./History.ts"
import { deliveryLabel, settlementLabel } from "./Labels.ts"
import type { FaultKind, Operation, OperationKind } from "./Schedule.ts"

/** RabbitMQ's default of `consumer_timeout`. */
const consumerTimeout = "30 minutes"

/** The effects of a fault outside the process. */
export interface Surroundings {
  readonly history: History
  readonly delay: Duration.Duration
  /** Starts an effect that outlives the operation. */
  readonly fork: (effect: Effect.Effect<unknown>) => void
  readonly disconnect: (worker: WorkerProcess) => void
  /** Closes the connection of a worker that has crashed, and starts another worker later. */
  readonly onCrash: (worker: WorkerProcess) => void
  /** Publishes a copy of the message to the end of its queue. */
  readonly copyToEnd: (delivery: Delivery) => Effect.Effect<void>
}

/** The outcomes of an operation that fails. */
export interface Failures<A, E> {
  readonly before: Effect.Effect<A, E>
  readonly after: Effect.Effect<A, E>
}

/**
 * One process of the worker. After a crash, each of its operations waits for ever. Fibers are not interrupted, because
 * a process that is gone runs no finalizers.
 */
export class WorkerProcess {
  readonly name: string
  /** The name of the connection to the broker. */
  readonly connection: string
  isDead = false
  readonly unsettled = new Map<Delivery, Operation>()
  readonly inFlight = new Set<Operation>()
  readonly #surroundings: Surroundings
  readonly #history: History

  constructor(name: string, connection: string, surroundings: Surroundings) {
    this.name = name
    this.connection = connection
    this.#surroundings = surroundings
    this.#history = surroundings.history
  }

  /** Runs an effect that is not an operation. It never returns after a crash. */
  alive<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() =>
      this.isDead ? this.#gone : Effect.flatMap(Effect.exit(effect), (exit) => this.#unlessGone(exit))
    )
  }

  /** Runs an operation with the faults that the schedule has for it. */
  perform<A, E, R, A2, E2>(
    kind: OperationKind,
    label: string,
    effect: Effect.Effect<A, E, R>,
    failures: Failures<A2, E2>
  ): Effect.Effect<A | A2, E | E2, R> {
    return Effect.suspend(() => {
      if (this.isDead || this.#history.isExceeded) return this.#gone
      const operation = this.#history.begin(this.name, kind, label)
      this.inFlight.add(operation)
      return Effect.ensuring(
        this.#withFaults(operation, effect, failures),
        Effect.sync(() => {
          this.#history.activity++
          this.inFlight.delete(operation)
        })
      )
    })
  }

  /** Returns whether the worker receives the message. */
  receive(delivery: Delivery): boolean {
    if (this.isDead || this.#history.isExceeded) return false
    const operation = this.#history.begin(this.name, "delivery", deliveryLabel(delivery))
    this.unsettled.set(delivery, operation)
    this.#strike(operation, "before")
    if (!this.unsettled.has(delivery)) return false
    if (this.#history.strikes(operation, "reorder")) {
      this.#moveToEnd(delivery)
      return false
    }
    if (this.#history.strikes(operation, "duplicate")) {
      this.#surroundings.fork(this.#surroundings.copyToEnd(delivery))
    }
    return true
  }

  settle(delivery: Delivery, how: Settlement): Settled {
    if (this.isDead || this.#history.isExceeded) return "stale"
    if (!this.unsettled.has(delivery)) return delivery.settle(how)
    const operation = this.#history.begin(this.name, "settlement", settlementLabel(delivery, how))
    this.#strike(operation, "before")
    if (this.isDead) return "stale"
    const settled = this.#end(delivery, how)
    this.#strike(operation, "after")
    return settled
  }

  /** Forgets deliveries of a channel that has ended. The broker delivers them again. */
  forget(isLost: (delivery: Delivery) => boolean): void {
    this.#history.activity++
    for (const delivery of this.unsettled.keys()) if (isLost(delivery)) this.unsettled.delete(delivery)
  }

  crash(): void {
    if (this.isDead) return
    this.isDead = true
    this.unsettled.clear()
    this.#surroundings.onCrash(this)
  }

  /** A copy is no redelivery. So a message that is one returns to the queue instead, as RabbitMQ returns it. */
  #moveToEnd(delivery: Delivery): void {
    const { copyToEnd, fork } = this.#surroundings
    const end = (how: Settlement) => Effect.sync(() => this.#end(delivery, how))
    fork(delivery.redelivered ? end("requeue") : Effect.andThen(copyToEnd(delivery), end("ack")))
  }

  #end(delivery: Delivery, how: Settlement): Settled {
    this.#history.activity++
    this.unsettled.delete(delivery)
    return delivery.settle(how)
  }

  #withFaults<A, E, R, A2, E2>(
    operation: Operation,
    effect: Effect.Effect<A, E, R>,
    failures: Failures<A2, E2>
  ): Effect.Effect<A | A2, E | E2, R> {
    const strikes = (what: FaultKind) => this.#history.strikes(operation, what)
    const delayed = (what: FaultKind) => (strikes(what) ? Effect.sleep(this.#surroundings.delay) : Effect.void)
    return Effect.gen({ self: this }, function* () {
      // The loss of a connection interrupts the handler. A fiber that runs notices it when it yields.
      if (this.#strike(operation, "before")) yield* Effect.yieldNow
      yield* delayed("delay before")
      if (this.isDead) return yield* this.#gone
      if (strikes("fail before")) return yield* failures.before
      if (strikes("hang")) return yield* this.#hang(operation)
      const exit = yield* Effect.exit(operation.kind === "publish" ? this.#publish(operation, effect) : effect)
      if (this.isDead) return yield* this.#gone
      if (this.#strike(operation, "after")) yield* Effect.yieldNow
      yield* delayed("delay after")
      if (this.isDead) return yield* this.#gone
      if (strikes("fail after")) return yield* failures.after
      return yield* exit
    })
  }

  /** The connection may break while the confirm is on its way. */
  #publish<A, E, R>(operation: Operation, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.gen({ self: this }, function* () {
      const publishing = yield* Effect.forkChild(effect, { startImmediately: true })
      if (this.#history.strikes(operation, "disconnect after")) this.#surroundings.disconnect(this)
      return yield* Fiber.join(publishing)
    })
  }

  #hang(operation: Operation): Effect.Effect<never> {
    const { disconnect, fork } = this.#surroundings
    const closeChannel = Effect.sync(() => {
      if (this.inFlight.has(operation)) disconnect(this)
    })
    return Effect.suspend(() => {
      fork(Effect.delay(closeChannel, consumerTimeout))
      return Effect.never
    })
  }

  /** Returns whether the connection was lost. */
  #strike(operation: Operation, when: "before" | "after"): boolean {
    if (this.#history.strikes(operation, `crash ${when}`)) this.crash()
    if (!this.#history.strikes(operation, `disconnect ${when}`)) return false
    this.#surroundings.disconnect(this)
    return true
  }

  /** Waits for ever, but must not hold up the end of the run. */
  get #gone(): Effect.Effect<never> {
    return Effect.suspend(() => (this.#history.isOver ? Effect.interrupt : Effect.never))
  }

  #unlessGone<A, E>(exit: Exit.Exit<A, E>): Effect.Effect<A, E> {
    return this.isDead ? this.#gone : exit
  }
}
