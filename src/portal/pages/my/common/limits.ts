import type { ResponseOf } from "../../../api/Endpoints.ts"
import { countText, moneyText, relativeText } from "../../../shared/words/format.ts"

export type HeldLimits = ResponseOf<"GET", "/admin-ui/v1/me/limits">
export type OwnLimit = HeldLimits["limits"][number]
export type SharedLimit = HeldLimits["shared"][number]
export type MeterName = OwnLimit["meter"]
type Measured = Pick<OwnLimit, "unit" | "window">

const units: Readonly<Record<OwnLimit["unit"], string>> = { requests: "Requests", tokens: "Tokens", usd: "Money" }
const windows: Readonly<Record<OwnLimit["window"], string>> = {
  minute: "this minute",
  day: "today",
  month: "this month"
}

/** "Money today", "Requests this minute". */
export const limitLabel = ({ unit, window }: Measured): string => `${units[unit]} ${windows[window]}`

export const amountText = (unit: OwnLimit["unit"], amount: number): string =>
  unit === "usd" ? moneyText(amount) : countText(amount)

/** The requests to which a limit applies, if not to all: "for the model gpt-5". */
export const withinText = (within: string | null): string => {
  if (within === null) return ""
  const [kind = "", ...name] = within.split(":")
  const what = kind === "model" ? "the model " : kind === "route" ? "the path " : ""
  return `for ${what}${name.length === 0 ? kind : name.join(":")}`
}

/** Those with whom a limit is shared, from the name of what shares it. */
export const sharedWith = (scopeName: string): string => {
  const kind = scopeName.split(":")[0] ?? ""
  const known: Readonly<Record<string, string>> = {
    team: "your team",
    project: "your project",
    model: "all who use this model",
    route: "all who use this path"
  }
  return known[kind] ?? "everyone"
}

/** Of the limits that a person thinks of first, the one that says how much is left. */
const order: ReadonlyArray<MeterName> = [
  "daily_budget_usd",
  "monthly_budget_usd",
  "max_tokens_per_day",
  "max_requests_per_day",
  "tpm_limit",
  "rpm_limit"
]

/** A limit with nothing left refuses everything, whatever the others have. Of several, the last to begin anew counts. */
const usedUp = (limits: ReadonlyArray<OwnLimit>): OwnLimit | undefined =>
  limits
    .filter(({ remaining, within }) => within === null && remaining !== null && remaining <= 0)
    .toSorted((a, b) => Date.parse(b.resets_at) - Date.parse(a.resets_at))[0]

export const mainLimit = (limits: ReadonlyArray<OwnLimit>): OwnLimit | undefined =>
  usedUp(limits) ??
  order
    .map((meter) => limits.find((limit) => limit.meter === meter && limit.within === null))
    .find((limit) => limit !== undefined && limit.remaining !== null)

/** The limits in an order that stays while they are used. The API has the nearest to its maximum first. */
export const inOrder = (limits: ReadonlyArray<OwnLimit>): ReadonlyArray<OwnLimit> =>
  limits.toSorted(
    (a, b) =>
      Number(a.within !== null) - Number(b.within !== null) ||
      (a.within ?? "").localeCompare(b.within ?? "") ||
      order.indexOf(a.meter) - order.indexOf(b.meter)
  )

const verbs = { usd: "spend", tokens: "use", requests: "send" } as const

/** "You may spend $2.31 more today (resets in 5 h)." */
export const headline = (limits: ReadonlyArray<OwnLimit>, now: number): string => {
  const limit = mainLimit(limits)
  if (limit === undefined || limit.remaining === null)
    return limits.length === 0 ? "Nothing limits what you may use." : "How much is left is not known at the moment."
  const { remaining, unit, window } = limit
  const resets = `resets ${relativeText(Date.parse(limit.resets_at), now)}`
  const what = unit === "usd" ? "" : ` ${unit}`
  return remaining <= 0
    ? `Nothing is left ${windows[window]} of ${amountText(unit, limit.limit)}${what} (${resets}).`
    : `You may ${verbs[unit]} ${amountText(unit, remaining)} more${what} ${windows[window]} (${resets}).`
}
