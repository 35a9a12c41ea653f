import { type AllowList, allows } from "./AllowList.ts"
import { allModels, type Facts, printable } from "./facts/Facts.ts"
import type { KeyPolicy } from "./KeyPolicy.ts"
import { exceeds, type Limit } from "./Limit.ts"
import { allowsModel } from "./ModelPattern.ts"
import { toDollars } from "./Price.ts"
import { requestTooLarge, responseTooLarge } from "./routes/BodyLimit.ts"
import type { PolicyRoute, Provider } from "./routes/CanonicalRoute.ts"
import * as CompatPaths from "./routes/CompatPaths.ts"

export interface PolicyRequest {
  readonly route: PolicyRoute
  readonly provider: Provider
  /** The service that the path names, and the services linked to the key. If absent, the body may name a service. */
  readonly service?: { readonly name: string; readonly linked: ReadonlyArray<string> } | undefined
  /** True if upstream work continues after the response. The gateway does not see its models and tokens. */
  readonly worksLater: boolean
  readonly facts: Facts
  readonly requestBytes: number
  /** The size that a simulation assumes. It is unknown for real requests, whose limit the forwarder enforces. */
  readonly responseBytes: number | undefined
  readonly hourUtc: number
  readonly running: number
  readonly estimatedCostNanos: number
  /** The models of the request without a price. An empty name stands for a request without a model. */
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
  readonly retryAfterSeconds?: number
}

/** The result of the checks. They stop at the first denial. `passed` lists the checks before the denial. */
type Decision =
  | { readonly _tag: "Allowed"; readonly passed: ReadonlyArray<Check> }
  | { readonly _tag: "Denied"; readonly passed: ReadonlyArray<Check>; readonly denial: Denial }

/** Runs all checks. Requests, simulations and explanations share this function, so that their results agree. */
export const decide = (policy: KeyPolicy, request: PolicyRequest): Decision => decideBy(checks, policy, request)

/** Runs only the checks that need no body. `decide` runs them first too, so the body never changes their result. */
export const decideBeforeBody = (policy: KeyPolicy, request: PolicyRequest): Decision =>
  decideBy(checksBeforeBody, policy, request)

const decideBy = (checks: ReadonlyArray<CheckRule>, policy: KeyPolicy, request: PolicyRequest): Decision => {
  for (let index = 0; index < checks.length; index++) {
    const denial = denialOf(checks[index]!, policy, request)
    if (denial !== undefined) return { _tag: "Denied", passed: names.slice(0, index), denial }
  }
  return allowed
}

/** Returns true if the policy needs the body's content, or the size of a body without content-length (`unsized`). */
export const dependsOnBody = (policy: KeyPolicy, unsized = false): boolean =>
  bodyRules.some(({ needs, when }) => (when === "content" || (when === "size" && unsized)) && needs(policy))

/** The policy fields that depend on the body's content, on its model's price, or on its size. */
const bodyRules: ReadonlyArray<{
  readonly field: keyof KeyPolicy
  readonly check: Check
  readonly when: "content" | "price" | "size"
  readonly needs: (policy: KeyPolicy) => boolean
}> = [
  {
    field: "allowed_models",
    check: "model",
    when: "content",
    needs: (policy) => policy.allowed_models._tag === "Allow"
  },
  {
    field: "unpriced_models",
    check: "price",
    when: "price",
    needs: (policy) => policy.unpriced_models === "refuse"
  },
  { field: "allow_streaming", check: "streaming", when: "content", needs: (policy) => !policy.allow_streaming },
  { field: "allow_tools", check: "tools", when: "content", needs: (policy) => !policy.allow_tools },
  ...(
    [
      ["max_tool_call_count", "tool_count", "content"],
      ["max_tool_schema_bytes", "tool_schema", "content"],
      ["max_output_tokens_per_request", "output_tokens", "content"],
      ["max_input_tokens_per_request", "input_tokens", "size"]
    ] as const
  ).map(([field, check, when]) => ({
    field,
    check,
    when,
    needs: (policy: KeyPolicy) => policy[field]._tag === "Limited"
  }))
]

export const worksLater = (provider: Provider, target: string): boolean =>
  provider === "compat" && CompatPaths.workOf(target) === "later"

export const usageLimitFields = ["tpm_limit", "max_tokens_per_day", "daily_budget_usd", "monthly_budget_usd"] as const

/** The limits that the gateway cannot enforce on upstream work that continues after the response. */
const laterRules: ReadonlyArray<{ readonly field: keyof KeyPolicy; readonly needs: (policy: KeyPolicy) => boolean }> = [
  ...bodyRules.filter(({ check }) => check !== "streaming"),
  ...([...usageLimitFields, "max_cost_per_request"] as const).map((field) => ({
    field,
    needs: (policy: KeyPolicy) => policy[field]._tag === "Limited"
  }))
]

export const limitOfLaterWork = (policy: KeyPolicy): keyof KeyPolicy | undefined =>
  laterRules.find(({ needs }) => needs(policy))?.field

export const laterWorkDenial = (limit: string): Omit<Denial, "check"> => ({
  code: "policy_denied",
  message: `The gateway cannot enforce ${limit} on this path, because the upstream works after its response and does not report models and tokens. Send the requests individually (or in bulk to /v1/messages/batches), or ask an operator for a key without that limit.`
})

export const bodyChecks = (policy: KeyPolicy): ReadonlyArray<Check> =>
  bodyRules.flatMap(({ check, needs }) => (needs(policy) ? [check] : []))

/** Denies a request with an unread body if the key's policy or a model's policy (`modelLayers`) needs the body. */
export const unreadBodyDenial = (policy: KeyPolicy, modelLayers = false): Denial | undefined => {
  const rule = bodyRules.find(({ needs }) => needs(policy))
  if (rule !== undefined) return denyUnreadBody(rule.check, `This key's policy sets ${rule.field}`)
  return modelLayers ? denyUnreadBody("model", "Some models have policies of their own") : undefined
}

const denyUnreadBody = (check: Check, reason: string): Denial => ({
  check,
  code: "policy_denied",
  message: `${reason}, and the gateway does not read bodies on this path. Use a route whose bodies the gateway reads, or ask an operator to set body_policies to skip in the passthrough settings.`
})

export const allDenials = (policy: KeyPolicy, request: PolicyRequest): ReadonlyArray<Denial> =>
  checks.flatMap((rule) => denialOf(rule, policy, request) ?? [])

/** Returns the layers that deny the request. At least one exists, because merging policies adds no denials. */
export const denyingLayers = <Layer extends { readonly policy: KeyPolicy }>(
  layers: ReadonlyArray<Layer>,
  check: Check,
  request: PolicyRequest
): ReadonlyArray<Layer> => layers.filter(({ policy }) => allDenials(policy, request).some((one) => one.check === check))

const denialOf = (rule: CheckRule, policy: KeyPolicy, request: PolicyRequest): Denial | undefined => {
  const denial = rule.test(policy, request)
  return denial === undefined ? undefined : { check: rule.name, code: "policy_denied", ...denial }
}

export const unlistedModelMessage = (model: string): string =>
  `There is no model "${printable(model)}" that this key may use.`

/** Returns lists that allow nothing after merging, although each layer's list allows something. */
export const disjointLists = <Layer extends { readonly policy: KeyPolicy }>(
  merged: KeyPolicy,
  layers: ReadonlyArray<Layer>
): ReadonlyArray<{ readonly list: ListName; readonly layers: ReadonlyArray<Layer> }> =>
  listNames.flatMap((list) => {
    if (!allowsNothing(merged[list])) return []
    const setting = layers.filter(({ policy }) => policy[list]._tag === "Allow")
    return setting.some(({ policy }) => allowsNothing(policy[list])) ? [] : [{ list, layers: setting }]
  })

const listNames = [
  "allowed_routes",
  "allowed_models",
  "allowed_providers",
  "allowed_services",
  "allowed_hours_utc"
] as const
type ListName = (typeof listNames)[number]

const allowsNothing = (list: AllowList<string | number>): boolean => list._tag === "Allow" && list.values.length === 0

interface CheckRule {
  readonly name: Check
  /** True if the check also runs before the body is read. The `service` check then sees only a service in the path. */
  readonly beforeBody?: true
  readonly test: (
    policy: KeyPolicy,
    request: PolicyRequest
  ) => (Omit<Denial, "check" | "code"> & { readonly code?: DenialCode }) | undefined
}

const checks: ReadonlyArray<CheckRule> = [
  {
    name: "deny",
    beforeBody: true,
    test: (policy) =>
      policy.deny
        ? { message: "This key's policy denies every request. Ask an operator to change the policy." }
        : undefined
  },
  {
    name: "route",
    beforeBody: true,
    // A key that is linked to a service needs no permission for the service's route.
    test: (policy, { route, service }) =>
      allows(policy.allowed_routes, route) || service?.linked.includes(service.name) === true
        ? undefined
        : { message: `This key's policy does not allow the route ${route}. Ask an operator to allow it.` }
  },
  {
    name: "provider",
    beforeBody: true,
    test: (policy, { provider }) =>
      allows(policy.allowed_providers, provider)
        ? undefined
        : { message: `This key's policy does not allow the provider ${provider}. Ask an operator to allow it.` }
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
            message: `This key would have ${running} requests running at once; the limit max_concurrent_requests of its policy is ${limitText(policy.max_concurrent_requests)}. Wait for a request to end, or ask an operator to raise the limit.`,
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
                ? "This key is not linked to this service. Ask an operator to link it."
                : "This key's policy does not allow this service. Ask an operator to allow it."
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
          message: `This key's policy restricts models, and the gateway cannot determine the models that "${facts.unjudgedMember}" selects. Send the request without that member.`,
          param: facts.unjudgedMember
        }
      }
      return facts.omitsModel
        ? { message: "This key's policy restricts models, so the request must name its model.", param: "model" }
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
            message: `The request offers ${facts.toolCount} tools; the limit max_tool_call_count of this key's policy is ${limitText(policy.max_tool_call_count)}. Offer fewer tools, or ask an operator to raise the limit.`,
            param: "tools"
          }
        : undefined
  },
  {
    name: "tool_schema",
    test: (policy, { facts }) =>
      exceeds(policy.max_tool_schema_bytes, facts.toolSchemaBytes)
        ? {
            message: `The request's tools take ${facts.toolSchemaBytes} bytes; the limit max_tool_schema_bytes of this key's policy is ${limitText(policy.max_tool_schema_bytes)}. Shorten the tools' schemas, or ask an operator to raise the limit.`,
            param: "tools"
          }
        : undefined
  },
  {
    name: "request_bytes",
    test: ({ max_request_body_bytes: maximum }, { requestBytes }) =>
      maximum !== null && requestBytes > maximum
        ? {
            code: "request_body_too_large",
            message: requestTooLarge({ bytes: maximum, setBy: "this key's policy" })
          }
        : undefined
  },
  {
    name: "response_bytes",
    test: ({ max_response_body_bytes: maximum }, { responseBytes }) =>
      maximum !== null && responseBytes !== undefined && responseBytes > maximum
        ? {
            code: "response_body_too_large",
            message: responseTooLarge({ bytes: maximum, setBy: "this key's policy" })
          }
        : undefined
  },
  {
    name: "input_tokens",
    test: (policy, { facts }) =>
      exceeds(policy.max_input_tokens_per_request, facts.inputTokens)
        ? {
            message: `The request has an estimated ${facts.inputTokens} input tokens; the limit max_input_tokens_per_request of this key's policy is ${limitText(policy.max_input_tokens_per_request)}. Shorten the input, or ask an operator to raise the limit.`
          }
        : undefined
  },
  {
    name: "output_tokens",
    test: (policy, { facts }) =>
      exceeds(policy.max_output_tokens_per_request, outputOf(facts))
        ? {
            message: `The request asks for up to ${outputOf(facts)} output tokens; the limit max_output_tokens_per_request of this key's policy is ${limitText(policy.max_output_tokens_per_request)}. Request fewer tokens, or ask an operator to raise the limit.`,
            param: "max_tokens"
          }
        : undefined
  },
  {
    name: "cost",
    test: (policy, { estimatedCostNanos }) =>
      exceeds(policy.max_cost_per_request, toDollars(estimatedCostNanos))
        ? {
            message: `The request's estimated cost is $${toDollars(estimatedCostNanos)}; the limit max_cost_per_request of this key's policy is $${limitText(policy.max_cost_per_request)}. Shorten the request, or ask an operator to raise the limit.`
          }
        : undefined
  },
  {
    name: "price",
    test: ({ unpriced_models }, { unpricedModels: [model] }) =>
      unpriced_models === "refuse" && model !== undefined
        ? {
            message: `This key's policy refuses models without a price (unpriced_models), and ${model === "" ? "the request names no model. Name a model with a price" : `"${printable(model)}" has none. Use a model with a price, or ask an operator to set it: PUT /admin-ui/admin/model-prices/${encodeURIComponent(printable(model))}, or svc-runtime prices import`}.`,
            param: "model"
          }
        : undefined
  }
]

const maxNamedModels = 10

const refusedModelMessage = (model: string, allowed: ReadonlyArray<string>): string => {
  const named = allowed.slice(0, maxNamedModels).map(printable).join(", ")
  const others = allowed.length > maxNamedModels ? ` and ${allowed.length - maxNamedModels} more` : ""
  const choice = allowed.length === 0 ? "none is allowed" : `allowed: ${named}${others}`
  return `This key's policies do not allow the requested model "${printable(model)}" (${choice}).`
}

/** A choice without an output limit counts one token. The gateway then sends the policy's limit upstream. */
const outputOf = ({ choices, largestOutput }: Facts): number => Math.max(choices, largestOutput)

const bodyService = ({ service }: Facts): PolicyRequest["service"] =>
  service === undefined ? undefined : { name: service, linked: [] }

const limitText = (limit: Limit): string => (limit._tag === "Unlimited" ? "not set" : String(limit.max))

const checksBeforeBody = checks.filter(({ beforeBody }) => beforeBody === true)

const names = checks.map(({ name }) => name)

/** The checks in the order in which they run, and the first of them, which need no body. */
export const checkNames: { readonly all: ReadonlyArray<Check>; readonly beforeBody: ReadonlyArray<Check> } = {
  all: names,
  beforeBody: checksBeforeBody.map(({ name }) => name)
}

const allowed: Decision = { _tag: "Allowed", passed: names }
