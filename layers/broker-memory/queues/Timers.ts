import { Duration, Effect, type Fiber } from "effect"

interface Timer {
  readonly time: number
  readonly callback: () => void
}

/** JavaScript timers cannot be longer than 24 days, so longer waits are split. */
const maxSleepMs = Duration.toMillis("1 day")

/** Each owner has at most one timer. A single fiber sleeps until the earliest timer is due. */
export class Timers {
  readonly #now: () => number
  readonly #fork: (sleeping: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #timers = new Map<object, Timer>()
  #sleeping: { readonly until: number; readonly fiber: Fiber.Fiber<void> } | undefined

  constructor(now: () => number, fork: (sleeping: Effect.Effect<void>) => Fiber.Fiber<void>) {
    this.#now = now
    this.#fork = fork
  }

  set(owner: object, time: number, callback: () => void): void {
    this.#timers.set(owner, { time, callback })
    if (this.#sleeping === undefined || time < this.#sleeping.until) this.#sleep(time)
  }

  clear(owner: object): void {
    this.#timers.delete(owner)
  }

  stop(): void {
    this.#timers.clear()
    this.#sleeping?.fiber.interruptUnsafe()
    this.#sleeping = undefined
  }

  #sleep(time: number): void {
    this.#sleeping?.fiber.interruptUnsafe()
    const until = Math.min(time, this.#now() + maxSleepMs)
    const wake = Effect.sync(() => {
      this.#sleeping = undefined
      this.#runDue()
    })
    const remaining = until - this.#now()
    // Yield first, because the caller may be in the middle of a change.
    const sleep = remaining > 0 ? Effect.sleep(remaining) : Effect.yieldNow
    this.#sleeping = { until, fiber: this.#fork(Effect.andThen(sleep, wake)) }
  }

  #runDue(): void {
    const now = this.#now()
    const due = Array.from(this.#timers).filter(([, { time }]) => time <= now)
    for (const [owner] of due) this.#timers.delete(owner)
    for (const [, { callback }] of due.toSorted(([, left], [, right]) => left.time - right.time)) callback()
    let next = this.#sleeping?.until ?? Infinity
    for (const { time } of this.#timers.values()) next = Math.min(next, time)
    // A callback may already have started a sleep that ends early enough.
    if (next < (this.#sleeping?.until ?? Infinity)) this.#sleep(next)
  }
}
