import type { RouteId, RouteMode } from "./CanonicalRoute.ts"
import type { Facts } from "./Facts.ts"
import { cost, dearest, type ModelPrice } from "./Price.ts"

/** What a request on a billable route counts as when nobody knows its price (reference §1.2). */
export const defaultCostNanos = 10_000_000

/** Output that a request is reserved for when it sets no bound itself. */
const openOutputTokens = 1024

/**
 * How a request is accounted.
 *
 * - `answer`: reserved, then settled by what its answer reports.
 * - `estimate`: reserved, and the reservation is the account: a message batch is answered before it is run.
 * - `status`: direct mode. Reserved; the token estimate stands, the money is given back (reference §1.4, §5).
 * - `free`: lists, look-ups and counts cost nothing.
 */
export type Accounting = "answer" | "estimate" | "status" | "free"

const answered: ReadonlySet<RouteId> = new Set(["chat-completions", "responses", "embeddings", "messages"])

export const accountingOf = (routeId: RouteId, method: string, mode: RouteMode): Accounting => {
  const kind = answered.has(routeId)
    ? "answer"
    : routeId === "message-batches" && method === "POST"
      ? "estimate"
      : "free"
  return mode === "direct_upstream_passthrough" && kind !== "free" ? "status" : kind
}

/** What a request will use at the most, as far as one can tell. */
export interface Wanted {
  readonly inputTokens: number
  /** Input, and the output that the request allows. */
  readonly tokens: number
  readonly nanos: number
  /** No price is known for the request: `nanos` is a guess. */
  readonly nanosGuessed: boolean
}

/** What to reserve before the answer is known. */
export const wanted = (accounting: Accounting, facts: Facts, price: ModelPrice | undefined): Wanted => {
  if (accounting === "free") return { inputTokens: 0, tokens: 0, nanos: 0, nanosGuessed: false }
  const { inputTokens } = facts
  const tokens = inputTokens + (facts.maxOutputTokens ?? 0)
  if (price === undefined) return { inputTokens, tokens, nanos: defaultCostNanos * facts.requests, nanosGuessed: true }
  const output = facts.maxOutputTokens ?? openOutputTokens * facts.requests
  return {
    inputTokens,
    tokens,
    nanos: cost(price, { input: inputTokens, output, cachedInput: 0, cacheWrite: 0 }),
    nanosGuessed: false
  }
}

/** One model's price, or the dearest of a batch; unknown as soon as one of them is. */
export const priceOf = (
  models: ReadonlyArray<string>,
  prices: ReadonlyMap<string, ModelPrice>
): ModelPrice | undefined => {
  if (models.length === 1) return prices.get(models[0]!)
  const known = models.map((model) => prices.get(model)).filter((price) => price !== undefined)
  return known.length === models.length ? dearest(known) : undefined
}
