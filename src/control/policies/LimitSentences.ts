import { type LimitField, limitFields } from "../../policy/SharedLimits.ts"
import type { DeniedAmounts } from "../../state/UsageRecord.ts"
import type { Refusal } from "../api/holder/HolderApi.ts"

/** A limit that refused a request. Records of older versions, and refusals of today's policies, have no amounts. */
export interface FullLimit {
  readonly field: LimitField
  /** True if several keys share the limit. The holder of one of them is not told how much of it is left. */
  readonly isShared: boolean
  readonly amounts: DeniedAmounts | undefined
}

type Kind = "requests" | "tokens" | "money"

interface LimitWords {
  readonly kind: Kind
  readonly window: string
  readonly wait: string
}

const minute = { window: "minute", wait: "send it again in the next minute" }
const day = { window: "day", wait: "wait for 00:00 UTC" }
const month = { window: "month", wait: "wait for the next month (UTC)" }

const words: Readonly<Record<LimitField, LimitWords>> = {
  rpm_limit: { kind: "requests", ...minute },
  tpm_limit: { kind: "tokens", ...minute },
  max_requests_per_day: { kind: "requests", ...day },
  max_tokens_per_day: { kind: "tokens", ...day },
  daily_budget_usd: { kind: "money", ...day },
  monthly_budget_usd: { kind: "money", ...month }
}

const sharedPrefix = "shared_"

/** Returns the limit that a check is about. `undefined` if the check is about something else. */
export const limitOfCheck = (
  check: string
): (Pick<FullLimit, "field" | "isShared"> & { readonly kind: Kind }) | undefined => {
  const isShared = check.startsWith(sharedPrefix)
  const name = isShared ? check.slice(sharedPrefix.length) : check
  const field = limitFields.find((one) => one === name)
  return field && { field, isShared, kind: words[field].kind }
}

/**
 * Says why a limit refused a request. A limit that is not used up refuses too: a request must fit with the most that it
 * may use, which is more than what it uses in the end.
 */
export const ofLimit = (limit: FullLimit): Refusal => {
  const { amounts } = limit
  const { kind, wait } = words[limit.field]
  const askForMore = "ask whoever gave you the key for a higher limit"
  const isUsedUp = kind === "requests" || (amounts !== undefined && amounts.used >= amounts.limit)
  const neverFits = amounts !== undefined && amounts.wanted > amounts.limit
  const smaller = isUsedUp
    ? []
    : ["ask for fewer output tokens (max_tokens)", ...(kind === "money" ? ["use a cheaper model"] : [])]
  return {
    sentence: isUsedUp ? usedUp(limit) : tooLittleLeft(limit, neverFits),
    what_to_do: choices([...smaller, ...(neverFits ? [] : [wait]), askForMore])
  }
}

const usedUp = ({ amounts, field, isShared }: FullLimit): string => {
  const { kind, window } = words[field]
  const whole = amounts === undefined ? "" : ` (${atMost(kind, amounts.limit)})`
  const subject = kind === "money" ? "budget" : kind
  return `${isShared ? "The shared" : "This key's"} ${subject} of this ${window}${whole} ${kind === "money" ? "was" : "were"} used up.`
}

const tooLittleLeft = ({ amounts, field, isShared }: FullLimit, neverFits: boolean): string => {
  const { kind, window } = words[field]
  const verb = kind === "money" ? "cost" : "use"
  const limit = `${isShared ? "the shared" : "this key's"} ${kind === "money" ? "budget" : "limit of tokens"} of this ${window}`
  if (amounts === undefined) return `The request could ${verb} more than what was left of ${limit}.`
  const most = `The request could ${verb} up to ${atLeast(kind, amounts.wanted)}`
  const whole = `${limit} (${atMost(kind, amounts.limit)})`
  if (neverFits) return `${most}, which is more than the whole of ${whole}.`
  if (isShared) return `${most}, which is more than what was left of ${whole}.`
  return `${most}, and ${atMost(kind, amounts.limit - amounts.used)} ${kind === "money" ? "was" : "were"} left of ${whole}.`
}

const nanosPerMicro = 1_000
const microsPerDollar = 1_000_000

const dollars = (micros: number): string => `$${micros / microsPerDollar}`

/** Rounds the need of a request up and the rest of its limit down, so that no refused request looks as if it fitted. */
const atLeast = (kind: Kind, units: number): string =>
  kind === "money" ? dollars(Math.ceil(units / nanosPerMicro)) : `${units} ${kind}`

const atMost = (kind: Kind, units: number): string =>
  kind === "money" ? dollars(Math.floor(units / nanosPerMicro)) : `${units}`

const choices = (all: ReadonlyArray<string>): string => {
  const text = all.length > 1 ? `${all.slice(0, -1).join(", ")}, or ${all.at(-1)}` : (all[0] ?? "")
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
