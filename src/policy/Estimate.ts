import { allModels, type Facts } from "./facts/Facts.ts"
import type { KeyPolicy, UnpricedModels } from "./KeyPolicy.ts"
import { cost, highestPrice, type ModelPrice, type PricedTokens, toNanos } from "./Price.ts"
import type { PriceList } from "./PriceList.ts"
import type { RouteId, RouteMode } from "./routes/CanonicalRoute.ts"

/** The flat cost of a billable request whose price is unknown: $0.01. */
export const defaultCostNanos = 10_000_000

/** The assumed output tokens of a response that neither the request nor a policy limits. */
const defaultOutputTokens = 4096

/**
 * Decides the charge of a request:
 * - `answer`: an amount is reserved, then replaced by the usage that the response reports.
 * - `estimate`: the reserved amount is charged, because the upstream continues to work after its response (batches).
 * - `status`: the reserved amount is charged, because the gateway does not read the response (direct mode).
 * - `free`: lists, look-ups and token counts cost nothing.
 */
export type Accounting = "answer" | "estimate" | "status" | "free"

const settledByResponse: ReadonlySet<RouteId> = new Set(["chat-completions", "responses", "embeddings", "messages"])

export const accountingOf = (routeId: RouteId, method: string, mode: RouteMode): Accounting => {
  const kind = settledByResponse.has(routeId)
    ? "answer"
    : routeId === "message-batches" && method === "POST"
      ? "estimate"
      : "free"
  return mode === "direct_upstream_passthrough" && kind !== "free" ? "status" : kind
}

export const accountingWithBody = (accounting: Accounting, { background }: Facts): Accounting =>
  background && accounting === "answer" ? "estimate" : accounting

export interface UsageEstimate {
  /** The minimum tokens: input, requested output, and one token for each choice without an output limit. */
  readonly inputTokens: number
  /** `inputTokens` plus the assumed output. Only the assumed part is reduced to fit a smaller limit. */
  readonly tokens: number
  readonly nanos: number
  /** True if `nanos` is the flat cost, or that of the dearest price, of a request without a known price. */
  readonly nanosEstimated: boolean
}

export const requestOnly: UsageEstimate = { inputTokens: 0, tokens: 0, nanos: 0, nanosEstimated: false }

export interface Ceiling {
  readonly unit: "requests" | "tokens" | "nanos"
  readonly limit: number
}

/** Returns the assumed output tokens of a choice without an output limit. They fit all limits of the key. */
export const outputPerOpenChoice = (
  facts: Facts,
  price: ModelPrice | undefined,
  policy: Pick<KeyPolicy, "max_cost_per_request" | "max_output_tokens_per_request">,
  limits: ReadonlyArray<Ceiling>
): number => {
  const { choices, boundedOutput, openChoices } = facts
  if (openChoices === 0) return 0
  const { max_cost_per_request: cost, max_output_tokens_per_request: output } = policy
  let each = output._tag === "Limited" ? Math.floor(output.max / Math.max(1, choices)) : defaultOutputTokens
  const narrow = (ceiling: Ceiling) => {
    each = Math.min(each, Math.floor((outputTokensThatFit(facts, price, ceiling) - boundedOutput) / openChoices))
  }
  limits.forEach(narrow)
  if (cost._tag === "Limited") narrow({ unit: "nanos", limit: toNanos(cost.max) })
  return Math.max(1, each)
}

/** Returns the output tokens that fit `ceiling` in addition to the input. Negative if the input alone exceeds it. */
export const outputTokensThatFit = (
  { inputTokens }: Facts,
  price: ModelPrice | undefined,
  { limit, unit }: Ceiling
): number => {
  if (unit === "requests" || (unit === "nanos" && price === undefined)) return Number.POSITIVE_INFINITY
  if (unit === "tokens" || price === undefined) return limit - inputTokens
  const nanos = limit - costOf(price, inputTokens, 0)
  if (nanos < 0) return -1
  if (price.output === 0) return Number.POSITIVE_INFINITY
  const output = Math.floor((nanos * 1_000_000) / price.output)
  // The result may exceed the limit by a nano-dollar or two, because floating-point division rounds.
  return costOf(price, inputTokens, output) > limit ? output - Math.ceil(2_000_000 / price.output) : output
}

const costOf = (price: ModelPrice, input: number, output: number): number =>
  cost(price, { input, output, cachedInput: 0, cacheWrite: 0 })

export interface ReservedUsage extends UsageEstimate {
  readonly output: number
  /** The maximum output tokens. This is the limit that the gateway sends upstream, or `maxUnboundedOutput`. */
  readonly maxOutput: number
}

/**
 * Estimates the usage to reserve. Each choice without an output limit counts `perResponse` tokens. `isSentUpstream` is
 * true if the upstream receives this number as a limit.
 */
export const estimateUsage = (
  accounting: Accounting,
  facts: Facts,
  price: RequestPrice | undefined,
  open: { readonly perResponse: number; readonly isSentUpstream: boolean }
): ReservedUsage => {
  if (accounting === "free") return free
  const { boundedOutput, inputTokens, totalOutput, openChoices, requests } = facts
  const hasOutput = boundedOutput > 0 || openChoices > 0
  const named = hasOutput ? totalOutput : 0
  const outputWith = (each: number) => Math.max(named, boundedOutput + openChoices * each)
  const output = outputWith(open.perResponse)
  const nanos =
    price === undefined
      ? defaultCostNanos * requests
      : charge(price, { input: inputTokens, output, cachedInput: 0, cacheWrite: 0 })
  return {
    inputTokens: inputTokens + outputWith(1),
    tokens: inputTokens + output,
    nanos,
    nanosEstimated: isDefaultCharge(price, nanos),
    output,
    maxOutput: outputWith(open.isSentUpstream ? open.perResponse : maxUnboundedOutput)
  }
}

/** Current models write at most this many tokens per response. */
const maxUnboundedOutput = 128_000

const free: ReservedUsage = { inputTokens: 0, tokens: 0, nanos: 0, nanosEstimated: false, output: 0, maxOutput: 0 }

export interface RequestPrice extends ModelPrice {
  /** The minimum charge in nano-dollars. It is set if one of the requested models has no price. */
  readonly minimumNanos?: number
  /** True if the prices are the dearest of the price list, in place of those of a model that has none. */
  readonly isAssumed?: true
}

export const charge = (price: RequestPrice, tokens: PricedTokens): number =>
  Math.max(price.minimumNanos ?? 0, cost(price, tokens))

/** True if the charge is not that of a configured price. */
export const isDefaultCharge = (price: RequestPrice | undefined, nanos: number): boolean =>
  price === undefined || price.isAssumed === true || nanos === price.minimumNanos

const isUnnamed = ({ omitsModel, models }: Facts): boolean => omitsModel || models.length === 0

/** Returns the models of a billable request that have no price. An empty name stands for a request without a model. */
export const unpricedModels = (accounting: Accounting, facts: Facts, prices: PriceList): ReadonlyArray<string> => {
  if (accounting === "free") return []
  const unknown = allModels(facts).filter((model) => prices.priceOf(model) === undefined)
  return isUnnamed(facts) ? ["", ...unknown] : unknown
}

/**
 * Returns the highest price of all named models. Naming further models then never lowers the charge. `unpriced` decides
 * about models without a price; `refuse` does not matter here, because the policy refuses the request.
 */
export const priceOfRequest = (facts: Facts, prices: PriceList, unpriced: UnpricedModels): RequestPrice | undefined => {
  const { alternativeModels, models } = facts
  if (models.length === 1 && alternativeModels.length === 0 && !facts.omitsModel) {
    return prices.priceOf(models[0]!) ?? assumedPrice(facts, prices, unpriced)
  }
  const known = highestPrice(allModels(facts).flatMap((model) => prices.priceOf(model) ?? []))
  if (!isUnnamed(facts) && models.every((model) => prices.priceOf(model) !== undefined)) return known
  return (
    assumedPrice(facts, prices, unpriced) ?? (known && { ...known, minimumNanos: defaultCostNanos * facts.requests })
  )
}

const assumedPrice = (
  { requests }: Facts,
  { dearest }: PriceList,
  unpriced: UnpricedModels
): RequestPrice | undefined =>
  unpriced === "dearest" && dearest !== undefined
    ? { ...dearest, minimumNanos: defaultCostNanos * requests, isAssumed: true }
    : undefined
