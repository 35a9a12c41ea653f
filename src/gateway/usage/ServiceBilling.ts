import type { UsageEstimate } from "../../policy/Estimate.ts"
import { toNanos } from "../../policy/Price.ts"
import type { ServiceCall } from "../../policy/ServiceCall.ts"
import * as ServicePricing from "../../policy/ServicePricing.ts"
import type { CostSource } from "../../state/UsageRecord.ts"
import type { Body } from "../request/LenientBody.ts"
import * as Billing from "./Billing.ts"

export interface ServiceCharge {
  readonly wanted: UsageEstimate
  readonly bill: (outcome: Billing.ExchangeOutcome) => Billing.Bill
}

export const of = ({ method, path, service }: ServiceCall, { facts, streamed, select }: Body): ServiceCharge => {
  const price = ServicePricing.resolve(service.pricing, method, path, select)
  const { boundedOutput, inputTokens } = facts
  const terms = { costMode: price.cost_mode, pricingRule: price.ruleName }
  return {
    wanted: {
      inputTokens: inputTokens + boundedOutput,
      tokens: Math.max(inputTokens, streamed?.maxTokens ?? 0) + boundedOutput,
      ...ServicePricing.reservation(service.pricing, method, path, price)
    },
    bill: (outcome) => {
      if (outcome._tag === "Nothing") return { ...Billing.unbilled, ...terms }
      const cost = costOf(price, outcome)
      const nanos = cost.costNanos ?? 0
      const usage = outcome._tag === "Answered" ? outcome.observed.reported?.usage : undefined
      if (usage?.input === undefined && usage?.output === undefined) {
        // Without reported tokens, the request's size counts towards token limits but is not recorded.
        const tokens = streamed?.tokens() ?? inputTokens
        return { ...Billing.unbilled, ...cost, ...terms, settled: { tokens, nanos } }
      }
      const total = usage.total ?? (usage.input ?? 0) + (usage.output ?? 0)
      return {
        usageSource: "reported",
        usage: { ...usage, total },
        ...cost,
        ...terms,
        settled: { tokens: total, nanos }
      }
    }
  }
}

interface ServiceCost {
  /** In billionths of a dollar. `null` if the cost is unknown or the service is free. */
  readonly costNanos: number | null
  readonly costSource: CostSource
}

export const costOf = (price: ServicePricing.ServicePrice, outcome: Billing.ExchangeOutcome): ServiceCost => {
  if (outcome._tag === "Nothing" || price.cost_mode === "none") return { costNanos: null, costSource: "none" }
  if (price.cost_mode === "fixed") {
    return {
      costNanos: toNanos(price.estimated_cost_usd ?? 0),
      costSource: price.by === "rule" ? "service_pricing_rule_fixed" : "service_default_fixed"
    }
  }
  const costUsd = outcome._tag === "Answered" ? outcome.observed.reported?.costUsd : undefined
  return costUsd === undefined
    ? { costNanos: null, costSource: "missing_upstream_cost" }
    : {
        costNanos: toNanos(costUsd),
        costSource: price.by === "rule" ? "service_pricing_rule_passthrough" : "service_default_passthrough"
      }
}
