import { Duration, Effect, type Fiber } from "effect"

interface Timer {
  readonly time: number
  readonly ring: () => void
}

/** A longer wait is taken in parts: timers of the platform do not reach beyond 24 days. */
const longest = Duration.toMillis("1 day")

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

  set(owner: object, time: number, ring: () => void): void {
    this.#timers.set(owner, { time, ring })
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
    const until = Math.min(time, this.#now() + longest)
    const wake = Effect.sync(() => {
      this.#sleeping = undefined
      this.#ring()
    })
    const rest = until - this.#now()
    // Never at once: whoever sets an alarm is in the middle of something.
    const sleep = rest > 0 ? Effect.sleep(rest) : Effect.yieldNow
    this.#sleeping = { until, fiber: this.#fork(Effect.andThen(sleep, wake)) }
  }

  #ring(): void {
    const now = this.#now()
    const due = Array.from(this.#timers).filter(([, { time }]) => time <= now)
    for (const [owner] of due) this.#timers.delete(owner)
    for (const [, { ring }] of due.toSorted(([, left], [, right]) => left.time - right.time)) ring()
    let next = this.#sleeping?.until ?? Infinity
    for (const { time } of this.#timers.values()) next = Math.min(next, time)
    // Who rang may have set an alarm, which need not be the next.
    if (next < (this.#sleeping?.until ?? Infinity)) this.#sleep(next)
  }
}
