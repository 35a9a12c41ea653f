import * as Meters from "./Meters.ts"

export interface SettledUsage {
  readonly tokens: number
  readonly nanos: number
}

export interface SettlementCounter {
  readonly meter: Meters.Meter
  readonly meterIndex: number
  /**
   * - `whole`: the reservation's window is open: usage minus reservation.
   * - `reserved`: it has ended: unused reservation is returned to it.
   * - `excess`: the current window, for usage beyond the reservation.
   */
  readonly part: "whole" | "reserved" | "excess"
  /** The counter may not exist yet. A counter missing in its reservation's window was lost. */
  readonly mayBegin: boolean
}

/** Returns the counters that change when a reservation is settled at `now`. Request counts never change. */
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
