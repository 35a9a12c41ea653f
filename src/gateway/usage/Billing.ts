import {
  type Accounting,
  charge,
  defaultCostNanos,
  isDefaultCharge,
  type RequestPrice,
  type ReservedUsage
} from "../../policy/Estimate.ts"
import type { Facts } from "../../policy/facts/Facts.ts"
import { toNanos } from "../../policy/Price.ts"
import type { CostMode } from "../../policy/routes/Service.ts"
import type { CostSource, UsageSource } from "../../state/UsageRecord.ts"
import type { SettledUsage } from "../limits/SettlementCounters.ts"
import type { TokenUsage } from "./TokenUsage.ts"
import type { ObservedUsage } from "./UsageTap.ts"

export type ExchangeOutcome =
  /** The gateway refused the request or the upstream failed, so nothing is billed. */
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Answered"; readonly observed: ObservedUsage; readonly isComplete: boolean }
  /** The client disconnected before the response began. The input is billed, because the upstream has processed it. */
  | { readonly _tag: "Abandoned" }

export interface Bill {
  readonly usageSource: UsageSource
  readonly usage: TokenUsage
  /** In billionths of a dollar. `null` if the request is not billed. */
  readonly costNanos: number | null
  readonly costSource: CostSource
  readonly costMode?: CostMode
  readonly pricingRule?: string | undefined
  readonly settled: SettledUsage
}

export const unbilled: Bill = {
  usageSource: "status_only",
  usage: {},
  costNanos: null,
  costSource: "none",
  settled: { tokens: 0, nanos: 0 }
}

/** Bills the cost that the upstream reports, else the operator's price for the tokens, else as `unpriced_models` says. */
export const bill = (
  accounting: Accounting,
  facts: Facts,
  price: RequestPrice | undefined,
  reserved: ReservedUsage,
  outcome: ExchangeOutcome
): Bill => {
  if (outcome._tag === "Nothing" || accounting === "free") return unbilled
  if (accounting === "status") {
    return { ...unbilled, costNanos: reserved.nanos, costSource: "estimate", settled: reserved }
  }
  if (accounting === "estimate") {
    return {
      usageSource: "estimated",
      usage: { input: facts.inputTokens, total: reserved.tokens },
      costNanos: reserved.nanos,
      costSource: costSourceOf(price, reserved.nanos),
      settled: reserved
    }
  }
  const { source, usage } = usageOf(facts, reserved, outcome)
  const input = usage.input ?? 0
  const output = usage.output ?? 0
  const total = usage.total ?? input + output
  const costUsd = outcome._tag === "Answered" ? outcome.observed.reported?.costUsd : undefined
  // A reported cost of zero may mean that the upstream knows no price, so a configured price takes precedence.
  const isUpstreamCost = costUsd !== undefined && (costUsd > 0 || price === undefined)
  const calculatedNanos =
    price === undefined
      ? defaultCostNanos
      : charge(price, { input, output, cachedInput: usage.cachedInput ?? 0, cacheWrite: usage.cacheWrite ?? 0 })
  const costNanos = isUpstreamCost ? toNanos(costUsd) : calculatedNanos
  const costSource = isUpstreamCost ? "upstream_passthrough" : costSourceOf(price, calculatedNanos)
  return {
    usageSource: source,
    usage: { ...usage, total },
    costNanos,
    costSource,
    settled: { tokens: total, nanos: costNanos }
  }
}

const costSourceOf = (price: RequestPrice | undefined, nanos: number): CostSource =>
  isDefaultCharge(price, nanos) ? "route_default" : "price_table"

/** Prefers the usage that the upstream reported, then an estimate from the response text, then the reservation. */
const usageOf = (
  facts: Facts,
  reserved: ReservedUsage,
  outcome: Exclude<ExchangeOutcome, { readonly _tag: "Nothing" }>
): { readonly source: UsageSource; readonly usage: TokenUsage } => {
  if (outcome._tag === "Abandoned") return { source: "estimated", usage: { input: facts.inputTokens, output: 0 } }
  const { estimatedOutput = reserved.output, reported } = outcome.observed
  const usage = reported?.usage ?? {}
  const hasOutput = reserved.maxOutput > 0
  if (outcome.isComplete && usage.input !== undefined && (usage.output !== undefined || !hasOutput)) {
    return { source: "reported", usage }
  }
  const guess = Math.min(estimatedOutput, reserved.maxOutput)
  const output = outcome.isComplete ? (usage.output ?? guess) : Math.max(usage.output ?? 0, guess)
  const { total: _, ...parts } = usage
  return { source: "estimated", usage: { ...parts, input: usage.input ?? facts.inputTokens, output } }
}
