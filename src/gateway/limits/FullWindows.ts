import type { Meter, MeterReading } from "./Meters.ts"

const maxWindows = 10_000

/**
 * Request counters that were found full. A count of requests is never given back, so such a window stays full until it
 * ends: what it refuses can be refused again without asking Redis, and before a body is read.
 */
export class FullWindows {
  /** What each holds, by the name of its counter, which names the window. The oldest are forgotten first. */
  readonly #used = new Map<string, number>()

  remember({ meter, used }: MeterReading): void {
    if (meter.unit !== "requests") return
    this.#used.delete(meter.key)
    this.#used.set(meter.key, used)
    if (this.#used.size > maxWindows) for (const oldest of this.#used.keys()) return void this.#used.delete(oldest)
  }

  /** Of `meters`, the first that has no room for another request. The limit may have changed since. */
  findFull(meters: () => ReadonlyArray<Meter>): MeterReading | undefined {
    if (this.#used.size === 0) return undefined
    for (const meter of meters()) {
      const used = this.#used.get(meter.key)
      if (used !== undefined && used >= meter.limit) return { meter, used }
    }
    return undefined
  }
}
