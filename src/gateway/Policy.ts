import type { Facts } from "./Facts.ts"
import type { ErrorCode } from "./GatewayError.ts"
import { allows } from "./model/AllowList.ts"
import type { PolicyRoute, Provider } from "./model/CanonicalRoute.ts"
import type { KeyPolicy } from "./model/KeyPolicy.ts"
import { exceeds } from "./model/Limit.ts"
import { toDollars } from "./model/Price.ts"

/** What is asked for, as far as a policy looks at it. */
export interface Question {
  readonly route: PolicyRoute
  readonly provider: Provider
  readonly facts: Facts
  readonly hourUtc: number
  readonly estimatedCostNanos: number
}

export type Check = "deny" | "route" | "provider" | "model" | "streaming" | "tools" | "hours" | "input_tokens" | "cost"

export interface Denial {
  readonly check: Check
  readonly code: ErrorCode
  readonly message: string
  readonly param?: string
}

/** The first check that fails decides; `passed` are those before it. */
export type Decision =
  | { readonly _tag: "Allowed"; readonly passed: ReadonlyArray<Check> }
  | { readonly _tag: "Denied"; readonly passed: ReadonlyArray<Check>; readonly denial: Denial }

/** Reference §8.4, in its order: the same function for the request path and for whoever asks why. */
export const decide = (policy: KeyPolicy, question: Question): Decision => {
  for (let index = 0; index < checks.length; index++) {
    const check = checks[index]!
    const denial = check.test(policy, question)
    if (denial !== undefined) {
      const passed = names.slice(0, index)
      return { _tag: "Denied", passed, denial: { check: check.name, code: "policy_denied", ...denial } }
    }
  }
  return allowed
}

interface Rule {
  readonly name: Check
  readonly test: (
    policy: KeyPolicy,
    question: Question
  ) => (Omit<Denial, "check" | "code"> & { readonly code?: ErrorCode }) | undefined
}

const checks: ReadonlyArray<Rule> = [
  {
    name: "deny",
    test: (policy) => (policy.deny ? { message: "This key's policy denies every request." } : undefined)
  },
  {
    name: "route",
    test: (policy, { route }) =>
      allows(policy.allowed_routes, route)
        ? undefined
        : { message: `This key's policy does not allow the route ${route}.` }
  },
  {
    name: "provider",
    test: (policy, { provider }) =>
      allows(policy.allowed_providers, provider)
        ? undefined
        : { message: `This key's policy does not allow the provider ${provider}.` }
  },
  {
    name: "model",
    test: (policy, { facts }) =>
      facts.models.every((model) => allows(policy.allowed_models, model))
        ? undefined
        : { message: "This key's policy does not allow the requested model.", param: "model" }
  },
  {
    name: "streaming",
    test: (policy, { facts }) =>
      facts.stream && !policy.allow_streaming
        ? {
            message: 'This key\'s policy does not allow streaming; send the request without "stream": true.',
            param: "stream"
          }
        : undefined
  },
  {
    name: "tools",
    test: (policy, { facts }) =>
      facts.tools && !policy.allow_tools
        ? { message: "This key's policy does not allow tools; send the request without them.", param: "tools" }
        : undefined
  },
  {
    name: "hours",
    test: (policy, { hourUtc }) =>
      allows(policy.allowed_hours_utc, hourUtc)
        ? undefined
        : { message: `This key's policy does not allow requests in hour ${hourUtc} UTC.` }
  },
  {
    name: "input_tokens",
    test: (policy, { facts }) =>
      exceeds(policy.max_input_tokens_per_request, facts.inputTokens)
        ? {
            message: `The request's estimated ${facts.inputTokens} input tokens exceed max_input_tokens_per_request of this key's policy.`
          }
        : undefined
  },
  {
    name: "cost",
    test: (policy, { estimatedCostNanos }) =>
      exceeds(policy.max_cost_per_request, toDollars(estimatedCostNanos))
        ? {
            message: `The request's estimated cost of $${toDollars(estimatedCostNanos)} exceeds max_cost_per_request of this key's policy.`
          }
        : undefined
  }
]

const names = checks.map(({ name }) => name)

const allowed: Decision = { _tag: "Allowed", passed: names }
