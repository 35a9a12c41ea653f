import type { Meter, MeterReading } from "../../state/limits/Meters.ts"

/** Returns OpenAI's rate limit headers. They show the limit per minute that has the least remaining. */
export const fields = (
  readings: ReadonlyArray<MeterReading>,
  now: number
): ReadonlyArray<readonly [string, string]> => {
  const fields: Array<readonly [string, string]> = []
  for (const unit of ["requests", "tokens"] as const) {
    let tightest: MeterReading | undefined
    for (const reading of readings) {
      const { meter } = reading
      if (meter.window !== "minute" || meter.unit !== unit) continue
      if (tightest === undefined || remainingOf(reading) < remainingOf(tightest)) tightest = reading
    }
    if (tightest === undefined) continue
    const { limit, remaining, reset } = names[unit]
    fields.push(
      [limit, String(tightest.meter.limit)],
      [remaining, String(remainingOf(tightest))],
      [reset, `${secondsLeft(tightest.meter, now)}s`]
    )
  }
  return fields
}

const remainingOf = ({ meter, used }: MeterReading): number => Math.max(0, meter.limit - used)

const namesOf = (unit: "requests" | "tokens") => ({
  limit: `x-ratelimit-limit-${unit}`,
  remaining: `x-ratelimit-remaining-${unit}`,
  reset: `x-ratelimit-reset-${unit}`
})

const names = { requests: namesOf("requests"), tokens: namesOf("tokens") }

const secondsLeft = (meter: Meter, now: number): number => Math.max(1, Math.ceil((meter.endsAt - now) / 1000))
