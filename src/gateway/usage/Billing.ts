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

/** How the exchange with the upstream went, as far as money is concerned. */
export type ExchangeOutcome =
  /** Refused by the gateway or failed at the upstream: nothing was had for it. */
  | { readonly _tag: "Nothing" }
  /** Answered with success, whole or cut. */
  | { readonly _tag: "Answered"; readonly observed: ObservedUsage; readonly isComplete: boolean }
  /** The client left before an answer began: the upstream has had the input. */
  | { readonly _tag: "Abandoned" }

export interface Bill {
  readonly usageSource: UsageSource
  readonly usage: TokenUsage
  /** `null`: not accounted. */
  readonly costNanos: number | null
  readonly costSource: CostSource
  /** Registered services: how they are paid for, and the rule that said so. */
  readonly costMode?: CostMode
  readonly pricingRule?: string | undefined
  /** What takes the reservation's place on the meters. */
  readonly settled: SettledUsage
}

/** The bill of a request for which nothing was had. */
export const unbilled: Bill = {
  usageSource: "status_only",
  usage: {},
  costNanos: null,
  costSource: "none",
  settled: { tokens: 0, nanos: 0 }
}

/**
 * What a request took: the upstream's figures where there are any, else the operator's prices, else the route's
 * default.
 */
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
  // an upstream that knows no price may say that the answer cost nothing
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

/**
 * What the answer reported. Else what was seen of it, and where it shows nothing the reservation; an answer is never
 * taken for longer than it was allowed to be. One that was cut may have reported its input already.
 */
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
