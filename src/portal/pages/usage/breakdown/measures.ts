import type { QueryOf, ResponseOf } from "../../../api/Endpoints.ts"
import type { Bucket } from "../../../shared/usage/buckets.ts"
import { countText, durationText, moneyText, shortCountText } from "../../../shared/words/format.ts"

export type Summary = ResponseOf<"GET", "/admin-ui/admin/usage/by-key">[number]["summary"]
type SortName = NonNullable<QueryOf<"GET", "/admin-ui/admin/usage/by-key">["sort_by"]>

export interface Measure {
  readonly name: string
  readonly label: string
  readonly of: (summary: Summary) => number
  readonly format: (value: number) => string
  /** By which the server finds the groups that have the most of it. */
  readonly sort: SortName
  /** False for averages: the parts do not add up to the whole. */
  readonly adds: boolean
}

/** Returns the measure of several summaries as one, or `null` if it is an average of no requests. */
export const combined = (measure: Measure, summaries: ReadonlyArray<Summary>): number | null => {
  const sum = summaries.reduce((total, one) => total + measure.of(one) * (measure.adds ? 1 : one.request_count), 0)
  if (measure.adds) return sum
  const requests = summaries.reduce((total, { request_count }) => total + request_count, 0)
  return requests === 0 ? null : sum / requests
}

/** Returns the measure of the buckets of one time. */
export const valueOf = (measure: Measure, buckets: ReadonlyArray<Bucket>): number | null =>
  combined(
    measure,
    buckets.map(({ summary }) => summary)
  )

const shortly = (count: number): string => (count < 10_000 ? countText(count) : shortCountText(count))

export const measures: ReadonlyArray<Measure> = [
  { name: "cost", label: "Cost", of: (sum) => sum.estimated_cost_usd, format: moneyText, sort: "cost", adds: true },
  {
    name: "requests",
    label: "Requests",
    of: (sum) => sum.request_count,
    format: shortly,
    sort: "requests",
    adds: true
  },
  {
    name: "failures",
    label: "Failures",
    of: (sum) => sum.failure_count,
    format: shortly,
    sort: "failures",
    adds: true
  },
  { name: "tokens", label: "Tokens", of: (sum) => sum.total_tokens, format: shortly, sort: "tokens", adds: true },
  {
    name: "input",
    label: "Input tokens",
    of: (sum) => sum.input_tokens,
    format: shortly,
    sort: "input_tokens",
    adds: true
  },
  {
    name: "output",
    label: "Output tokens",
    of: (sum) => sum.output_tokens,
    format: shortly,
    sort: "output_tokens",
    adds: true
  },
  {
    name: "cached",
    label: "Cached input tokens",
    of: (sum) => sum.cached_input_tokens,
    format: shortly,
    sort: "cached_input_tokens",
    adds: true
  },
  {
    name: "reasoning",
    label: "Reasoning tokens",
    of: (sum) => sum.reasoning_tokens,
    format: shortly,
    sort: "reasoning_tokens",
    adds: true
  },
  {
    name: "refused",
    label: "Refused by policies and limits",
    of: (sum) => sum.policy_denial_count + sum.rate_limit_denial_count + sum.budget_denial_count,
    format: shortly,
    sort: "refusals",
    adds: true
  },
  {
    name: "blocked",
    label: "Blocked by guardrails",
    of: (sum) => sum.guardrail_block_count,
    format: shortly,
    sort: "guardrail_blocks",
    adds: true
  },
  {
    name: "fallbacks",
    label: "Fallbacks",
    of: (sum) => sum.fallback_count,
    format: shortly,
    sort: "fallbacks",
    adds: true
  },
  {
    name: "unpriced",
    label: "Requests without a price",
    of: (sum) => sum.unpriced_request_count,
    format: shortly,
    sort: "unpriced_requests",
    adds: true
  },
  {
    name: "latency",
    label: "Average duration",
    of: (sum) => sum.average_latency_ms ?? 0,
    format: durationText,
    sort: "latency",
    adds: false
  }
]

const first = measures[0]

export const measureOf = (name: string | undefined): Measure => {
  const found = measures.find((measure) => measure.name === name) ?? first
  if (found === undefined) throw new Error("There is no measure.")
  return found
}
