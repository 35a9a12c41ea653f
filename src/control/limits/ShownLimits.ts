import { DateTime } from "effect"
import type { LimitRaise } from "../../policy/LimitRaise.ts"
import { toDollars } from "../../policy/Price.ts"
import type { CounterReading } from "../../state/limits/CounterReadings.ts"
import * as Meters from "../../state/limits/Meters.ts"
import type { LimitState } from "../api/limits/LimitsApi.ts"
import type { BindingLimits } from "./BindingLimits.ts"
import type { Owners } from "./LimitedKeys.ts"

export interface NamedLimits extends BindingLimits {
  readonly name: string
  readonly owners: Owners
}

/** `restored` is the sum of the usage records, if the counter is lost and the records could be read. */
export const toLimitState = (
  { name, owners, raises, within }: NamedLimits,
  reading: CounterReading,
  restored: number | undefined,
  now: number
): LimitState => {
  const { field, limit, scope, unit, window } = reading.meter
  const amount = unit === "nanos" ? toDollars : (units: number) => units
  const state = reading.known ? "counted" : restored === undefined ? "unknown" : "restored"
  const used = state === "counted" ? reading.used : restored
  const taken = used === undefined ? undefined : used + (reading.reserved ?? 0)
  const orNull = (units: number | undefined) => (units === undefined ? null : amount(units))
  const forecast = taken === undefined ? undefined : reachedAt(reading.meter, taken, now)
  return {
    meter: field,
    unit: unit === "nanos" ? "usd" : unit,
    window,
    scope: scope.owner._tag === "Key" ? "key" : scope.owner.kind,
    scope_id: scope.owner._tag === "Key" ? scope.owner.keyId : scope.owner.scopeId || null,
    scope_name: name,
    ...owners,
    within,
    state,
    limit: amount(limit),
    used: orNull(used),
    reserved: state === "unknown" ? null : orNull(reading.reserved),
    remaining: taken === undefined ? null : amount(Math.max(0, limit - taken)),
    share: taken === undefined ? null : limit === 0 ? 1 : taken / limit,
    resets_at: DateTime.makeUnsafe(reading.meter.endsAt),
    raised_until: raisedUntil(reading.meter, raises),
    forecast: forecast === undefined ? null : DateTime.makeUnsafe(forecast)
  }
}

/** Returns when the exception ends that the limit comes from. */
const raisedUntil = ({ field, scope }: Meters.Meter, raises: ReadonlyArray<LimitRaise>) => {
  const limit = scope.limits[field]
  const ends = raises.filter(({ limits }) => limit._tag === "Limited" && limits[field] === limit.max)
  return ends.length === 0 ? null : DateTime.makeUnsafe(Math.max(...ends.map(({ until }) => until)))
}

/** Returns when the limit is reached if the rest of the window is like its past. `undefined` if not in this window. */
const reachedAt = (meter: Meters.Meter, taken: number, now: number): number | undefined => {
  if (taken >= meter.limit) return now
  if (taken === 0) return undefined
  const { startsAt } = Meters.windowAt(meter.window, DateTime.makeUnsafe(meter.endsAt - 1))
  const at = startsAt + Math.ceil(((now - startsAt) * meter.limit) / taken)
  return at < meter.endsAt ? at : undefined
}

/** Unknown states come last. */
export const byNearness = (a: LimitState, b: LimitState): number => (b.share ?? -1) - (a.share ?? -1)
