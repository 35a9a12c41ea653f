import { allModels, type Facts } from "./facts/Facts.ts"
import type { KeyPolicy } from "./KeyPolicy.ts"
import { cost, highestPrice, type ModelPrice, type PricedTokens, toNanos } from "./Price.ts"
import type { PriceList } from "./PriceList.ts"
import type { RouteId, RouteMode } from "./routes/CanonicalRoute.ts"

/** What a request on a billable route counts as when nobody knows its price. */
export const defaultCostNanos = 10_000_000

/** Output tokens of an answer that neither the request nor a policy bounds. */
export const defaultOutputTokens = 4096

/**
 * How a request is accounted.
 *
 * - `answer`: reserved, then settled by what its answer reports.
 * - `estimate`: reserved, and the reservation is the account: a message batch is answered before it is run, and so is a
 *   response in the background.
 * - `status`: direct mode. Nobody reads the answer, so the reservation stands, for tokens and for money.
 * - `free`: lists, look-ups and counts cost nothing.
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

/** The same, once the body is known. */
export const accountingWithBody = (accounting: Accounting, { background }: Facts): Accounting =>
  background && accounting === "answer" ? "estimate" : accounting

/** What a request will use at the most, as far as one can tell. */
export interface UsageEstimate {
  /** Tokens that are certain: the input, the output that the request bounds, and one for each answer left open. */
  readonly inputTokens: number
  /** The same, with the output that the gateway supposes. Only that part shrinks where a limit is smaller. */
  readonly tokens: number
  readonly nanos: number
  /** `nanos` is what a request counts as whose price is not known. */
  readonly nanosEstimated: boolean
}

/** Neither tokens nor money. */
export const requestOnly: UsageEstimate = { inputTokens: 0, tokens: 0, nanos: 0, nanosEstimated: false }

/** A limit in one unit, as far as a reservation has to fit it. */
export interface Ceiling {
  readonly unit: "requests" | "tokens" | "nanos"
  readonly limit: number
}

/**
 * Output tokens for each answer that the request leaves open: the policy's bound, which the answers of one request
 * share, else `defaultOutputTokens`; and no more than what fits the limits that the request is under, so that a guess
 * never locks a key out.
 */
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

/** How many output tokens fit `ceiling` beside the input while nothing of it is used. Negative: not even the input does. */
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
  // the arithmetic may round by a nano-dollar or two
  return costOf(price, inputTokens, output) > limit ? output - Math.ceil(2_000_000 / price.output) : output
}

const costOf = (price: ModelPrice, input: number, output: number): number =>
  cost(price, { input, output, cachedInput: 0, cacheWrite: 0 })

/** What is held of the limits until the answer is known, and what the answer may be guessed at. */
export interface ReservedUsage extends UsageEstimate {
  /** Output tokens that are held. */
  readonly output: number
  /** A guess at the output never exceeds it: what the upstream was told, where it was told a bound. */
  readonly maxOutput: number
}

/** `perResponse`: output tokens for each open answer; `isSentUpstream`: the upstream is told so. */
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
  const most = (each: number) => Math.max(named, boundedOutput + openChoices * each)
  const output = most(open.perResponse)
  const nanos =
    price === undefined
      ? defaultCostNanos * requests
      : charge(price, { input: inputTokens, output, cachedInput: 0, cacheWrite: 0 })
  return {
    inputTokens: inputTokens + most(1),
    tokens: inputTokens + output,
    nanos,
    nanosEstimated: isDefaultCharge(price, nanos),
    output,
    maxOutput: most(open.isSentUpstream ? open.perResponse : maxUnboundedOutput)
  }
}

/** No answer is taken for longer, whatever passed: what today's models write at the most. */
const maxUnboundedOutput = 128_000

const free: ReservedUsage = { inputTokens: 0, tokens: 0, nanos: 0, nanosEstimated: false, output: 0, maxOutput: 0 }

/** What a request is priced by: the dearest of the models that it names, as far as their prices are known. */
export interface RequestPrice extends ModelPrice {
  /** Nano-dollars that it costs in any case, where a model that it asks for has no price. */
  readonly minimumNanos?: number
}

/** Nano-dollars. */
export const charge = (price: RequestPrice, tokens: PricedTokens): number =>
  Math.max(price.minimumNanos ?? 0, cost(price, tokens))

/** Whether `nanos`, charged by `price`, is the default of requests without a price. */
export const isDefaultCharge = (price: RequestPrice | undefined, nanos: number): boolean =>
  price === undefined || nanos === price.minimumNanos

/** A request of the body asks for no model by its name. */
const isUnnamed = ({ omitsModel, models }: Facts): boolean => omitsModel || models.length === 0

/** The models that a billable request may use and whose price is not known; `""` where it names none. */
export const unpricedModels = (accounting: Accounting, facts: Facts, prices: PriceList): ReadonlyArray<string> => {
  if (accounting === "free") return []
  const unknown = allModels(facts).filter((model) => prices.priceOf(model) === undefined)
  return isUnnamed(facts) ? ["", ...unknown] : unknown
}

/**
 * A name costs the client nothing, so that none may lower a price: it is the dearest of all models whose price is
 * known. Where a model that is asked for is not among them, the request costs at least what one without a price does;
 * one that only stands beside it need not exist.
 */
export const priceOfRequest = (facts: Facts, prices: PriceList): RequestPrice | undefined => {
  const { alternativeModels, models, requests } = facts
  if (models.length === 1 && alternativeModels.length === 0 && !facts.omitsModel) return prices.priceOf(models[0]!)
  const known = highestPrice(allModels(facts).flatMap((model) => prices.priceOf(model) ?? []))
  return known !== undefined && (isUnnamed(facts) || !models.every((model) => prices.priceOf(model) !== undefined))
    ? { ...known, minimumNanos: defaultCostNanos * requests }
    : known
}
