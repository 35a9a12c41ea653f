import type { TimePoint } from "../../../shared/charts/series.ts"
import type { Bucket } from "../../../shared/usage/buckets.ts"
import type { LimitState } from "../state/limitStates.ts"

const hourMs = 3_600_000
const dayMs = 24 * hourMs

export interface Window {
  readonly from: number
  readonly to: number
  readonly step: number
}

/** The window of a limit of the day or month, in UTC. */
export const windowOf = ({ resets_at, window }: Pick<LimitState, "resets_at" | "window">): Window => {
  const to = Date.parse(resets_at)
  const before = new Date(to - 1)
  return window === "month"
    ? { from: Date.UTC(before.getUTCFullYear(), before.getUTCMonth()), to, step: dayMs }
    : { from: to - dayMs, to, step: hourMs }
}

export interface Burn {
  readonly points: ReadonlyArray<TimePoint>
  /** When the budget ends at the rate of the latest fifth of the past, if before the reset. */
  readonly endsAtLatestRate: number | undefined
}

/**
 * What is left of a budget over its window: as it was, by the records; and as it will be, at the rate of the window so
 * far and at that of its latest fifth. The two make the cone in which the end lies.
 */
export const burnDown = (
  { limit, reserved, used }: Pick<LimitState, "limit" | "used" | "reserved">,
  { from, step, to }: Window,
  buckets: ReadonlyArray<Bucket>,
  now: number
): Burn => {
  const left = limit - (used ?? 0) - (reserved ?? 0)
  const spentAt = new Map(buckets.map(({ bucket, summary }) => [Date.parse(bucket), summary.estimated_cost_usd]))
  const taken = limit - left
  const recorded = [...spentAt.values()].reduce((sum, cost) => sum + cost, 0)
  const past = Math.max(1, now - from)
  const recentFrom = now - past / 5
  const recent = [...spentAt].reduce((sum, [at, cost]) => (at + step > recentFrom ? sum + cost : sum), 0)
  const recentSpan = Math.max(step / 4, now - Math.floor((recentFrom - from) / step) * step - from)
  const rates = { even: taken / past, latest: recent / recentSpan }
  const ahead = (rate: number, at: number) => Math.max(0, left - rate * (at - now))

  const points: Array<TimePoint> = [{ at: from, values: { left: limit, even: null, latest: null } }]
  let spent = 0
  for (let at = from + step; at <= now; at += step) {
    spent += spentAt.get(at - step) ?? 0
    // records and the counter differ a little, and the counter decides: the line ends where it is
    const share = recorded === 0 ? 0 : spent / recorded
    points.push({ at, values: { left: Math.max(0, limit - taken * share), even: null, latest: null } })
  }
  points.push({ at: now, values: { left: Math.max(0, left), even: Math.max(0, left), latest: Math.max(0, left) } })
  for (let at = Math.ceil((now + 1 - from) / step) * step + from; at <= to; at += step)
    points.push({ at, values: { left: null, even: ahead(rates.even, at), latest: ahead(rates.latest, at) } })
  const end = rates.latest > 0 ? now + left / rates.latest : Number.POSITIVE_INFINITY
  return { points, endsAtLatestRate: end < to ? end : undefined }
}
