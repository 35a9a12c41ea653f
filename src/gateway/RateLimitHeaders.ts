import type { Reading } from "./Limits.ts"
import type { Meter } from "./Meters.ts"

/**
 * `x-ratelimit-limit-requests` and its kin, in the form that family A's clients read, for the limits of a minute. They
 * take the place of the upstream's fields of the same names, which speak of the upstream's account.
 */
export const fields = (readings: ReadonlyArray<Reading>, now: number): ReadonlyArray<readonly [string, string]> =>
  readings
    .filter(({ meter }) => meter.window === "minute")
    .flatMap(({ meter, used }) => [
      [`x-ratelimit-limit-${meter.unit}`, String(meter.limit)],
      [`x-ratelimit-remaining-${meter.unit}`, String(Math.max(0, meter.limit - used))],
      [`x-ratelimit-reset-${meter.unit}`, `${secondsLeft(meter, now)}s`]
    ])

const secondsLeft = (meter: Meter, now: number): number => Math.max(1, Math.ceil((meter.endsAt - now) / 1000))
