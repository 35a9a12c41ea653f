import type { Reading } from "./Limits.ts"
import type { Meter, Unit } from "./Meters.ts"

/**
 * `x-ratelimit-limit-requests` and its kin, in the form that family A's clients read, for the limits of a minute. They
 * take the place of the upstream's fields of the same names, which speak of the upstream's account.
 */
export const fields = (readings: ReadonlyArray<Reading>, now: number): ReadonlyArray<readonly [string, string]> => {
  const fields: Array<readonly [string, string]> = []
  for (const { meter, used } of readings) {
    if (meter.window !== "minute") continue
    const { limit, remaining, reset } = names[meter.unit]
    fields.push(
      [limit, String(meter.limit)],
      [remaining, String(Math.max(0, meter.limit - used))],
      [reset, `${secondsLeft(meter, now)}s`]
    )
  }
  return fields
}

const namesOf = (unit: Unit) => ({
  limit: `x-ratelimit-limit-${unit}`,
  remaining: `x-ratelimit-remaining-${unit}`,
  reset: `x-ratelimit-reset-${unit}`
})

const names = { requests: namesOf("requests"), tokens: namesOf("tokens"), nanos: namesOf("nanos") }

const secondsLeft = (meter: Meter, now: number): number => Math.max(1, Math.ceil((meter.endsAt - now) / 1000))
