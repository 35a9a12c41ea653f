import { Duration, Effect, type Fiber } from "effect"

interface Timer {
  readonly time: number
  readonly callback: () => void
}

/** A longer wait is taken in parts: timers of the platform do not reach beyond 24 days. */
const maxSleepMs = Duration.toMillis("1 day")

/** Alarms by owner, one each, with one sleeping fiber for the earliest of them all. */
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
    // Never at once: whoever sets an alarm is in the middle of something.
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
    // Who rang may have set an alarm, which need not be the next.
    if (next < (this.#sleeping?.until ?? Infinity)) this.#sleep(next)
  }
}
