import type { Meter, MeterReading } from "../../state/limits/Meters.ts"

const maxWindows = 10_000

/** Remembers request counters that are full. They stay full until the window ends, because they never decrease. */
export class FullWindows {
  /** Usage by the Redis key of the counter. The oldest entry comes first. */
  readonly #used = new Map<string, number>()

  remember({ meter, used }: MeterReading): void {
    if (meter.unit !== "requests") return
    this.#used.delete(meter.key)
    this.#used.set(meter.key, used)
    if (this.#used.size > maxWindows) for (const oldest of this.#used.keys()) return void this.#used.delete(oldest)
  }

  findFull(meters: () => ReadonlyArray<Meter>): MeterReading | undefined {
    if (this.#used.size === 0) return undefined
    for (const meter of meters()) {
      const used = this.#used.get(meter.key)
      if (used !== undefined && used >= meter.limit) return { meter, used }
    }
    return undefined
  }
}
