import * as Meters from "../../state/limits/Meters.ts"

export interface SettledUsage {
  readonly tokens: number
  readonly nanos: number
}

export interface SettlementCounter {
  readonly meter: Meters.Meter
  readonly meterIndex: number
  /**
   * Selects the amount by which the counter changes:
   * - `whole`: in the reservation's window, while it lasts. Adds the usage and subtracts the reservation.
   * - `reserved`: in the reservation's window, after its end. Subtracts reserved amounts that were not used.
   * - `excess`: in the current window, if the reservation's window has ended. Adds usage beyond the reservation.
   */
  readonly part: "whole" | "reserved" | "excess"
  /** True if the counter may not exist yet. Otherwise a missing counter was lost and is not created. */
  readonly mayBegin: boolean
}

/** Returns the counters that the settlement of a reservation changes at `now`. It never changes request counters. */
export const countersOf = (meters: ReadonlyArray<Meters.Meter>, now: number): ReadonlyArray<SettlementCounter> =>
  meters.flatMap((meter, meterIndex): ReadonlyArray<SettlementCounter> => {
    if (meter.unit === "requests") return []
    const current = Meters.inWindowAt(meter, now)
    if (current === meter) return [{ meter, meterIndex, part: "whole", mayBegin: false }]
    return [
      { meter, meterIndex, part: "reserved", mayBegin: false },
      { meter: current, meterIndex, part: "excess", mayBegin: true }
    ]
  })

export const changesOf = (
  counters: ReadonlyArray<SettlementCounter>,
  amounts: ReadonlyArray<number>,
  used: SettledUsage
): { readonly open: ReadonlyArray<number>; readonly givenBack: ReadonlyArray<number> } => {
  const open: Array<number> = []
  const givenBack: Array<number> = []
  for (const { meter, part, meterIndex } of counters) {
    const reserved = amounts[meterIndex]!
    const spent = meter.unit === "tokens" ? used.tokens : used.nanos
    switch (part) {
      case "whole":
        open.push(spent - reserved)
        givenBack.push(spent)
        break
      case "reserved":
        open.push(Math.min(0, spent - reserved))
        givenBack.push(0)
        break
      case "excess":
        open.push(Math.max(0, spent - reserved))
        givenBack.push(spent)
        break
    }
  }
  return { open, givenBack }
}
