import { type AllowList, allows } from "./AllowList.ts"
import { allModels, type Facts } from "./facts/Facts.ts"
import type { KeyPolicy } from "./KeyPolicy.ts"
import { exceeds, type Limit } from "./Limit.ts"
import { allowsModel } from "./ModelPattern.ts"
import { toDollars } from "./Price.ts"
import { requestTooLarge, responseTooLarge } from "./routes/BodyLimit.ts"
import type { PolicyRoute, Provider } from "./routes/CanonicalRoute.ts"
import * as CompatPaths from "./routes/CompatPaths.ts"

/** What is asked for, as far as a policy looks at it. */
export interface PolicyRequest {
  readonly route: PolicyRoute
  readonly provider: Provider
  /** The registered service that is asked, and those that the key is linked to. Else the body may name one. */
  readonly service?: { readonly name: string; readonly linked: ReadonlyArray<string> } | undefined
  /** The upstream is to do work whose models and tokens nobody here will see. */
  readonly worksLater: boolean
  readonly facts: Facts
  /** Of the body as it came. */
  readonly requestBytes: number
  /** Unknown before the answer: there the byte path counts. A simulation may suppose it. */
  readonly responseBytes: number | undefined
  readonly hourUtc: number
  /** Requests of the key that run at once in this process, this one among them. */
  readonly running: number
  readonly estimatedCostNanos: number
  /** What the request would use and the operator's price list does not name; `""` for a model that is not named. */
  readonly unpricedModels: ReadonlyArray<string>
}

export type Check =
  | "deny"
  | "route"
  | "provider"
  | "hours"
  | "concurrency"
  | "later_work"
  | "service"
  | "model"
  | "streaming"
  | "tools"
  | "tool_count"
  | "tool_schema"
  | "request_bytes"
  | "response_bytes"
  | "input_tokens"
  | "output_tokens"
  | "cost"
  | "price"

export type DenialCode =
  | "policy_denied"
  | "concurrency_limit_exceeded"
  | "request_body_too_large"
  | "response_body_too_large"

export interface Denial {
  readonly check: Check
  readonly code: DenialCode
  readonly message: string
  readonly param?: string
  /** Where the same request may be allowed later. */
  readonly retryAfterSeconds?: number
}

/** The first check that fails decides; `passed` are those before it. */
export type Decision =
  | { readonly _tag: "Allowed"; readonly passed: ReadonlyArray<Check> }
  | { readonly _tag: "Denied"; readonly passed: ReadonlyArray<Check>; readonly denial: Denial }

/** The same function for the request path and for whoever asks why. */
export const decide = (policy: KeyPolicy, question: PolicyRequest): Decision => decideBy(checks, policy, question)

/**
 * The checks that need nothing of the body. They are the first of all checks, so that what is refused before the body
 * is read is what would be refused after it.
 */
export const decideBeforeBody = (policy: KeyPolicy, question: PolicyRequest): Decision =>
  decideBy(checksBeforeBody, policy, question)

const decideBy = (checks: ReadonlyArray<CheckRule>, policy: KeyPolicy, question: PolicyRequest): Decision => {
  for (let index = 0; index < checks.length; index++) {
    const denial = denialOf(checks[index]!, policy, question)
    if (denial !== undefined) return { _tag: "Denied", passed: names.slice(0, index), denial }
  }
  return allowed
}

/** Whether a decision hangs on what a body says, or on how long one is that does not say so before (`unsized`). */
export const dependsOnBody = (policy: KeyPolicy, unsized = false): boolean =>
  bodyRules.some(({ needs, when }) => (when === "said" || (when === "sized" && unsized)) && needs(policy))

/** What of a policy hangs on bodies: on what they say (of a model's price, not at services), or on their unannounced size. */
const bodyRules: ReadonlyArray<{
  readonly field: keyof KeyPolicy
  readonly check: Check
  readonly when: "said" | "priced" | "sized"
  readonly needs: (policy: KeyPolicy) => boolean
}> = [
  { field: "allowed_models", check: "model", when: "said", needs: (policy) => policy.allowed_models._tag === "Allow" },
  {
    field: "unpriced_models",
    check: "price",
    when: "priced",
    needs: (policy) => policy.unpriced_models === "refuse"
  },
  { field: "allow_streaming", check: "streaming", when: "said", needs: (policy) => !policy.allow_streaming },
  { field: "allow_tools", check: "tools", when: "said", needs: (policy) => !policy.allow_tools },
  ...(
    [
      ["max_tool_call_count", "tool_count", "said"],
      ["max_tool_schema_bytes", "tool_schema", "said"],
      ["max_output_tokens_per_request", "output_tokens", "said"],
      ["max_input_tokens_per_request", "input_tokens", "sized"]
    ] as const
  ).map(([field, check, when]) => ({
    field,
    check,
    when,
    needs: (policy: KeyPolicy) => policy[field]._tag === "Limited"
  }))
]

/** Whether a POST to `target` begins work whose models and tokens nobody here will see. */
export const worksLater = (provider: Provider, target: string): boolean =>
  provider === "compat" && CompatPaths.workOf(target) === "later"

/** The limits that a request counts on by what its answer reports. */
export const usageLimitFields = ["tpm_limit", "max_tokens_per_day", "daily_budget_usd", "monthly_budget_usd"] as const

/** The limits of a policy that nobody can hold work to that the upstream does later. */
const laterRules: ReadonlyArray<{ readonly field: keyof KeyPolicy; readonly needs: (policy: KeyPolicy) => boolean }> = [
  ...bodyRules.filter(({ check }) => check !== "streaming"),
  ...([...usageLimitFields, "max_cost_per_request"] as const).map((field) => ({
    field,
    needs: (policy: KeyPolicy) => policy[field]._tag === "Limited"
  }))
]

/** The first limit of `policy` that work cannot be held to that the upstream does later. */
export const limitOfLaterWork = (policy: KeyPolicy): keyof KeyPolicy | undefined =>
  laterRules.find(({ needs }) => needs(policy))?.field

/** Why work that the upstream does later is refused. `limit`: what it cannot be held to. */
export const laterWorkDenial = (limit: string): Omit<Denial, "check"> => ({
  code: "policy_denied",
  message: `This key is under ${limit}, and this path has the upstream do work whose models and tokens the gateway does not see. Send the requests themselves (in numbers to /v1/messages/batches), or ask an operator for a key without that limit.`
})

/** The checks of `policy` that cannot be made without a body. */
export const bodyChecks = (policy: KeyPolicy): ReadonlyArray<Check> =>
  bodyRules.flatMap(({ check, needs }) => (needs(policy) ? [check] : []))

/**
 * Why a body that nothing reads cannot be judged by `policy`; `undefined` where nothing of it hangs on bodies.
 * `modelLayers`: some models have policies of their own, and a body may name one of them.
 */
export const unreadBodyDenial = (policy: KeyPolicy, modelLayers = false): Denial | undefined => {
  const rule = bodyRules.find(({ needs }) => needs(policy))
  if (rule !== undefined) return denyUnreadBody(rule.check, `This key's policy sets ${rule.field}`)
  return modelLayers ? denyUnreadBody("model", "Some models have policies of their own") : undefined
}

const denyUnreadBody = (check: Check, reason: string): Denial => ({
  check,
  code: "policy_denied",
  message: `${reason}, and bodies are not read here. Use a route that the gateway reads, or ask an operator to set body_policies to skip in the passthrough settings.`
})

/** Every check that fails, in their order: what one layer alone has against a request. */
export const allDenials = (policy: KeyPolicy, question: PolicyRequest): ReadonlyArray<Denial> =>
  checks.flatMap((rule) => denialOf(rule, policy, question) ?? [])

/**
 * Of `layers`, those that deny by `check` on their own. A merged policy denies what one of its layers denies, so that
 * there is one for each denial.
 */
export const denyingLayers = <Layer extends { readonly policy: KeyPolicy }>(
  layers: ReadonlyArray<Layer>,
  check: Check,
  question: PolicyRequest
): ReadonlyArray<Layer> =>
  layers.filter(({ policy }) => allDenials(policy, question).some((one) => one.check === check))

const denialOf = (rule: CheckRule, policy: KeyPolicy, question: PolicyRequest): Denial | undefined => {
  const denial = rule.test(policy, question)
  return denial === undefined ? undefined : { check: rule.name, code: "policy_denied", ...denial }
}

/** Why the upstream is not asked what it says of a single model. */
export const unlistedModelMessage = (model: string): string =>
  `There is no model "${printable(model)}" that this key may use.`

/** The lists that allow nothing although each layer's own allows something, and the layers that set them. */
export const disjointLists = <Layer extends { readonly policy: KeyPolicy }>(
  merged: KeyPolicy,
  layers: ReadonlyArray<Layer>
): ReadonlyArray<{ readonly list: ListName; readonly layers: ReadonlyArray<Layer> }> =>
  listNames.flatMap((list) => {
    if (!allowsNothing(merged[list])) return []
    const setting = layers.filter(({ policy }) => policy[list]._tag === "Allow")
    return setting.some(({ policy }) => allowsNothing(policy[list])) ? [] : [{ list, layers: setting }]
  })

export const listNames = [
  "allowed_routes",
  "allowed_models",
  "allowed_providers",
  "allowed_services",
  "allowed_hours_utc"
] as const
export type ListName = (typeof listNames)[number]

const allowsNothing = (list: AllowList<string | number>): boolean => list._tag === "Allow" && list.values.length === 0

interface CheckRule {
  readonly name: Check
  /** Needs nothing of the body; the service of a request counts where its path names it. */
  readonly beforeBody?: true
  readonly test: (
    policy: KeyPolicy,
    question: PolicyRequest
  ) => (Omit<Denial, "check" | "code"> & { readonly code?: DenialCode }) | undefined
}

const checks: ReadonlyArray<CheckRule> = [
  {
    name: "deny",
    beforeBody: true,
    test: (policy) => (policy.deny ? { message: "This key's policy denies every request." } : undefined)
  },
  {
    name: "route",
    beforeBody: true,
    // the way to a linked service needs no permission of its own
    test: (policy, { route, service }) =>
      allows(policy.allowed_routes, route) || service?.linked.includes(service.name) === true
        ? undefined
        : { message: `This key's policy does not allow the route ${route}.` }
  },
  {
    name: "provider",
    beforeBody: true,
    test: (policy, { provider }) =>
      allows(policy.allowed_providers, provider)
        ? undefined
        : { message: `This key's policy does not allow the provider ${provider}.` }
  },
  {
    name: "hours",
    beforeBody: true,
    test: (policy, { hourUtc }) =>
      allows(policy.allowed_hours_utc, hourUtc)
        ? undefined
        : { message: `This key's policy does not allow requests in hour ${hourUtc} UTC.` }
  },
  {
    name: "concurrency",
    beforeBody: true,
    test: (policy, { running }) =>
      exceeds(policy.max_concurrent_requests, running)
        ? {
            code: "concurrency_limit_exceeded",
            message: `This key would have ${running} requests running at once; max_concurrent_requests of its policy is ${limitText(policy.max_concurrent_requests)}. Wait for one of them to end, or ask an operator to raise it.`,
            retryAfterSeconds: 1
          }
        : undefined
  },
  {
    name: "later_work",
    beforeBody: true,
    test: (policy, { worksLater }) => {
      const limit = worksLater ? limitOfLaterWork(policy) : undefined
      return limit && laterWorkDenial(limit)
    }
  },
  {
    name: "service",
    beforeBody: true,
    test: (policy, { facts, service = bodyService(facts) }) =>
      service === undefined ||
      (service.linked.length > 0
        ? service.linked.includes(service.name)
        : allows(policy.allowed_services, service.name))
        ? undefined
        : {
            message:
              service.linked.length > 0
                ? "This key is linked to other services, and not to this one."
                : "This key's policy does not allow this service."
          }
  },
  {
    name: "model",
    test: ({ allowed_models }, { facts }) => {
      if (allowed_models._tag !== "Allow") return undefined
      const refused = allModels(facts).find((model) => !allowsModel(allowed_models, model))
      if (refused !== undefined) return { message: refusedModelMessage(refused, allowed_models.values), param: "model" }
      if (facts.unjudgedMember !== undefined) {
        return {
          message: `This key's policy has a list of models, and what "${facts.unjudgedMember}" makes of the request cannot be judged by it. Send the request without that member.`,
          param: facts.unjudgedMember
        }
      }
      return facts.omitsModel
        ? { message: "This key's policy has a list of models, so that a request must name its model.", param: "model" }
        : undefined
    }
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
    name: "tool_count",
    test: (policy, { facts }) =>
      exceeds(policy.max_tool_call_count, facts.toolCount)
        ? {
            message: `The request offers ${facts.toolCount} tools; max_tool_call_count of this key's policy is ${limitText(policy.max_tool_call_count)}. Offer fewer, or ask an operator to raise it.`,
            param: "tools"
          }
        : undefined
  },
  {
    name: "tool_schema",
    test: (policy, { facts }) =>
      exceeds(policy.max_tool_schema_bytes, facts.toolSchemaBytes)
        ? {
            message: `The request's tools take ${facts.toolSchemaBytes} bytes; max_tool_schema_bytes of this key's policy is ${limitText(policy.max_tool_schema_bytes)}. Describe them in fewer, or ask an operator to raise it.`,
            param: "tools"
          }
        : undefined
  },
  {
    name: "request_bytes",
    test: ({ max_request_body_bytes: most }, { requestBytes }) =>
      most !== null && requestBytes > most
        ? {
            code: "request_body_too_large",
            message: requestTooLarge({ bytes: most, setBy: "this key's policy" })
          }
        : undefined
  },
  {
    name: "response_bytes",
    test: ({ max_response_body_bytes: most }, { responseBytes }) =>
      most !== null && responseBytes !== undefined && responseBytes > most
        ? {
            code: "response_body_too_large",
            message: responseTooLarge({ bytes: most, setBy: "this key's policy" })
          }
        : undefined
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
    name: "output_tokens",
    test: (policy, { facts }) =>
      exceeds(policy.max_output_tokens_per_request, outputOf(facts))
        ? {
            message: `The request asks for up to ${outputOf(facts)} output tokens; max_output_tokens_per_request of this key's policy is ${limitText(policy.max_output_tokens_per_request)}. Ask for fewer, or ask an operator to raise it.`,
            param: "max_tokens"
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
  },
  {
    name: "price",
    test: ({ unpriced_models }, { unpricedModels: [model] }) =>
      unpriced_models === "refuse" && model !== undefined
        ? {
            message: `This key's policy refuses models without a price (unpriced_models), and ${model === "" ? "the request names no model" : `"${printable(model)}" has none`}. Use a model that has one, or ask an operator to add its price to model-prices.`,
            param: "model"
          }
        : undefined
  }
]

/** Of the models that are allowed, as many as a message names. */
const maxNamedModels = 10

const refusedModelMessage = (model: string, allowed: ReadonlyArray<string>): string => {
  const named = allowed.slice(0, maxNamedModels).map(printable).join(", ")
  const others = allowed.length > maxNamedModels ? ` and ${allowed.length - maxNamedModels} more` : ""
  const choice = allowed.length === 0 ? "none is allowed" : `allowed: ${named}${others}`
  return `This key's policies do not allow the requested model "${printable(model)}" (${choice}).`
}

const printable = (name: string): string => name.replace(/[^\x20-\x7e]/g, "?").slice(0, 64)

/** An answer has one token at the least; where the request leaves it open, the policy's bound is written into it. */
const outputOf = ({ choices, largestOutput }: Facts): number => Math.max(choices, largestOutput)

const bodyService = ({ service }: Facts): PolicyRequest["service"] =>
  service === undefined ? undefined : { name: service, linked: [] }

const limitText = (limit: Limit): string => (limit._tag === "Unlimited" ? "not set" : String(limit.max))

const checksBeforeBody = checks.filter(({ beforeBody }) => beforeBody === true)

const names = checks.map(({ name }) => name)

const allowed: Decision = { _tag: "Allowed", passed: names }
