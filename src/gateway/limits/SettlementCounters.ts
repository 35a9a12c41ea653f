import * as Meters from "./Meters.ts"

/** What a settlement says of a request. */
export interface SettledUsage {
  readonly tokens: number
  readonly nanos: number
}

/** A counter that a settlement changes. */
export interface SettlementCounter {
  readonly meter: Meters.Meter
  /** Which of the reservation's meters. */
  readonly meterIndex: number
  /**
   * - `whole`: the window of the reservation has not ended: the difference of what was used and reserved.
   * - `reserved`: it has ended: what was reserved and not used is given back to it.
   * - `excess`: the window of now, for what was used beyond the reservation.
   */
  readonly part: "whole" | "reserved" | "excess"
  /** The counter may not be there yet. One that is gone in the window of its reservation was lost. */
  readonly mayBegin: boolean
}

/** The counters that change when a reservation on `meters` is settled at `now`. A request stays where it was counted. */
export const countersOf = (meters: ReadonlyArray<Meters.Meter>, now: number): ReadonlyArray<SettlementCounter> =>
  meters.flatMap((meter, place): ReadonlyArray<SettlementCounter> => {
    if (meter.unit === "requests") return []
    const current = Meters.inWindowAt(meter, now)
    if (current === meter) return [{ meter, meterIndex: place, part: "whole", mayBegin: false }]
    return [
      { meter, meterIndex: place, part: "reserved", mayBegin: false },
      { meter: current, meterIndex: place, part: "excess", mayBegin: true }
    ]
  })

/** What one request changes of each counter: while its reservation is open, and after it was given back. */
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
