import { DateTime, Duration } from "effect"
import { type ErrorCode, GatewayError } from "./GatewayError.ts"
import type { KeyPolicy } from "./model/KeyPolicy.ts"
import type { Limit } from "./model/Limit.ts"
import { toDollars, toNanos } from "./model/Price.ts"

export type Unit = "requests" | "tokens" | "nanos"
export type Window = "minute" | "day" | "month"

/** A counter of one unit in one calendar window (UTC), and the limit that a policy sets on it. */
export interface Meter {
  readonly field:
    | "rpm_limit"
    | "tpm_limit"
    | "max_requests_per_day"
    | "max_tokens_per_day"
    | "daily_budget_usd"
    | "monthly_budget_usd"
  readonly unit: Unit
  readonly window: Window
  /** In whole units: requests, tokens, nano-dollars. */
  readonly limit: number
  /** Name of its key in Redis (reference §5): `<name>:<key id>:<window id>`. */
  readonly key: string
  readonly name: string
  readonly windowId: string
  /** When the window ends, in epoch milliseconds. */
  readonly endsAt: number
}

/** The meters that `policy` sets for a key at `now`. None: the request needs no Redis to be admitted. */
export const of = (policy: KeyPolicy, keyId: string, now: DateTime.Utc): ReadonlyArray<Meter> =>
  kinds.flatMap(({ field, name, toUnits, unit, window }) => {
    const limit: Limit = policy[field]
    if (limit._tag === "Unlimited") return []
    const { endsAt, id } = windowAt(window, now)
    return [
      { field, unit, window, limit: toUnits(limit.max), key: `${name}:${keyId}:${id}`, name, windowId: id, endsAt }
    ]
  })

/**
 * The same, and the same array for as long as the minute, the smallest window, lasts: what is derived from a key's
 * meters can be remembered by them.
 */
export const remembering = (): ((policy: KeyPolicy, keyId: string, now: number) => ReadonlyArray<Meter>) => {
  const made = new WeakMap<
    KeyPolicy,
    { readonly keyId: string; readonly minute: number; readonly meters: ReadonlyArray<Meter> }
  >()
  return (policy, keyId, now) => {
    const minute = Math.floor(now / 60_000)
    const known = made.get(policy)
    if (known?.minute === minute && known.keyId === keyId) return known.meters
    const meters = of(policy, keyId, DateTime.makeUnsafe(now))
    made.set(policy, { keyId, minute, meters })
    return meters
  }
}

/** Those of `meters` that count requests, and the same array for the same `meters`. */
export const countingRequests = (): ((meters: ReadonlyArray<Meter>) => ReadonlyArray<Meter>) => {
  const made = new WeakMap<ReadonlyArray<Meter>, ReadonlyArray<Meter>>()
  return (meters) => {
    const known = made.get(meters)
    if (known !== undefined) return known
    const counting = meters.filter(({ unit }) => unit === "requests")
    made.set(meters, counting)
    return counting
  }
}

const whole = (units: number): number => Math.floor(units)

const kinds = [
  { field: "rpm_limit", unit: "requests", window: "minute", name: "rl:req", toUnits: whole },
  { field: "tpm_limit", unit: "tokens", window: "minute", name: "rl:tpm", toUnits: whole },
  { field: "max_requests_per_day", unit: "requests", window: "day", name: "rl:rpd", toUnits: whole },
  { field: "max_tokens_per_day", unit: "tokens", window: "day", name: "rl:tpd", toUnits: whole },
  { field: "daily_budget_usd", unit: "nanos", window: "day", name: "budget:daily", toUnits: toNanos },
  { field: "monthly_budget_usd", unit: "nanos", window: "month", name: "budget:monthly", toUnits: toNanos }
] as const

const pad = (value: number): string => String(value).padStart(2, "0")

/** The calendar window around `now`: its name (`YYYYMM`, `YYYYMMDD`, `YYYYMMDDHHMM`), start and end. */
export const windowAt = (
  window: Window,
  now: DateTime.Utc
): { readonly id: string; readonly startsAt: number; readonly endsAt: number } => {
  // plain UTC arithmetic: calendar functions took a twentieth of a request's time
  const at = new Date(DateTime.toEpochMillis(now))
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()]
  const monthId = `${year}${pad(month + 1)}`
  const dayId = `${monthId}${pad(day)}`
  switch (window) {
    case "month":
      return { id: monthId, startsAt: Date.UTC(year, month), endsAt: Date.UTC(year, month + 1) }
    case "day":
      return { id: dayId, startsAt: Date.UTC(year, month, day), endsAt: Date.UTC(year, month, day + 1) }
    case "minute": {
      const startsAt = at.getTime() - (at.getTime() % 60_000)
      return { id: `${dayId}${pad(at.getUTCHours())}${pad(at.getUTCMinutes())}`, startsAt, endsAt: startsAt + 60_000 }
    }
  }
}

/** How long a counter is kept: its window, and some (reference §5). */
export const keptSeconds: Record<Window, number> = { minute: 70, day: 172_800, month: 5_356_800 }

const retryAfterSeconds = (meter: Meter, now: number): number =>
  Math.max(1, Math.ceil(Duration.toSeconds(Duration.millis(meter.endsAt - now))))

const codeOf = ({ unit }: Meter): ErrorCode =>
  unit === "nanos" ? "budget_exceeded" : unit === "tokens" ? "token_rate_limit_exceeded" : "rate_limit_exceeded"

const amount = (meter: Meter, units: number): string =>
  meter.unit === "nanos" ? `$${toDollars(units)}` : `${units} ${meter.unit}`

/**
 * Names the limit, where it was set, what it holds and when it resets. What can never fit is not told to come again,
 * but how much output would fit (`outputTokens`), where that is known.
 */
export const refusal = (
  meter: Meter,
  used: number,
  wanted: number,
  now: number,
  outputTokens = Number.NaN
): GatewayError => {
  const limit = `${meter.field} of this key (${amount(meter, meter.limit)} a ${meter.window})`
  const code = codeOf(meter)
  if (wanted > meter.limit) {
    const wayOut =
      outputTokens >= 1 && Number.isFinite(outputTokens) ? ` Ask for at most ${outputTokens} output tokens in all.` : ""
    const message = `The request needs an estimated ${amount(meter, wanted)}, which can never fit ${limit}.${wayOut}`
    return new GatewayError({ code, message })
  }
  return new GatewayError({
    code,
    message: `The request would exceed ${limit}: ${amount(meter, used)} are used or reserved; the window resets at ${new Date(meter.endsAt).toISOString()}.`,
    retryAfterSeconds: retryAfterSeconds(meter, now)
  })
}
