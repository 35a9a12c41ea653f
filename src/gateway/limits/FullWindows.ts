import type { Meter, MeterReading } from "../../state/limits/Meters.ts"

const maxWindows = 10_000

/** An operator may reset a counter. Every process notices it after this time at the latest. */
const forgottenAfterMs = 5000

interface Full {
  readonly used: number
  readonly at: number
}

/** Remembers for some seconds request counters that are full: within a window they decrease only if they are reset. */
export class FullWindows {
  /** By the Redis key of the counter. The oldest entry comes first. */
  readonly #used = new Map<string, Full>()

  remember({ meter, used }: MeterReading, now: number): void {
    if (meter.unit !== "requests") return
    this.#used.delete(meter.key)
    this.#used.set(meter.key, { used, at: now })
    if (this.#used.size > maxWindows) for (const oldest of this.#used.keys()) return void this.#used.delete(oldest)
  }

  findFull(meters: () => ReadonlyArray<Meter>, now: () => number): MeterReading | undefined {
    if (this.#used.size === 0) return undefined
    for (const meter of meters()) {
      const full = this.#used.get(meter.key)
      if (full === undefined || full.used < meter.limit) continue
      if (now() - full.at < forgottenAfterMs) return { meter, used: full.used }
      this.#used.delete(meter.key)
    }
    return undefined
  }
}
