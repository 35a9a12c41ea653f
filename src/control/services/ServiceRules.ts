import type { EndpointPricingRule, PricingRule } from "../../policy/routes/Service.ts"
import { refusedRoutePattern, serviceNamePattern } from "../../policy/routes/Service.ts"
import type {
  EndpointInput,
  EndpointPricingRuleInput,
  NewService,
  PricingRuleInput,
  Service
} from "../api/services/ServicesApi.ts"
import type { Refusal } from "../store/Rules.ts"

/** A rule that is broken: the field to blame, and why. */
export interface Breach {
  readonly param: string
  readonly reason: string
}

const maxTextLength = 256
const maxPathLength = 512
const control = /\p{Cc}/u

const refusedText = (text: string): Refusal =>
  text.length === 0 || text.length > maxTextLength || control.test(text)
    ? `must have 1 to ${maxTextLength} characters, none of them a control character`
    : undefined

/** A path at the upstream, without query. */
const refusedPath = (path: string): Refusal =>
  path.length <= maxPathLength && /^\/[\x21-\x7e]*$/.test(path) && !/\/\/|[?#\\]/.test(path)
    ? undefined
    : `must be a path of at most ${maxPathLength} visible ASCII characters that begins with /, without //, ?, # or backslash`

/** RFC 6901: nothing, or tokens behind slashes; `~` only as `~0` and `~1`. */
const refusedPointer = (pointer: string): Refusal =>
  pointer.length <= maxPathLength && /^(?:\/(?:[^~/]|~[01])*)+$/u.test(pointer)
    ? undefined
    : `must be a JSON pointer such as /options/quality, of at most ${maxPathLength} characters`

const refusedTemplate = (template: string): Refusal => {
  const refusal = refusedPath(template)
  if (refusal !== undefined) return refusal
  return template.split("/").every((segment) => /^(?:\{[^{}]+\}|[^{}]*)$/.test(segment))
    ? undefined
    : "must have parameters as whole segments, such as /items/{id}"
}

/** A fixed price is a price. */
const refusedCost = (mode: Service["cost_mode"], cost: number | null): Refusal =>
  mode === "fixed" && cost === null ? "is required when cost_mode is fixed" : undefined

const first = (...checks: ReadonlyArray<readonly [param: string, refusal: Refusal]>): Breach | undefined => {
  for (const [param, reason] of checks) if (reason !== undefined) return { param, reason }
  return undefined
}

const optional = (refused: (text: string) => Refusal, text: string | null | undefined): Refusal =>
  text === null || text === undefined ? undefined : refused(text)

const each = <A>(
  param: string,
  items: ReadonlyArray<A>,
  breach: (item: A, at: string) => Breach | undefined
): Breach | undefined => {
  for (const [index, item] of items.entries()) {
    const found = breach(item, `${param}.${index}`)
    if (found !== undefined) return found
  }
  return undefined
}

const pricingBreach = (rule: PricingRuleInput, at: string): Breach | undefined => {
  const pointer = rule.json_pointer ?? rule.path
  if (rule.json_pointer !== undefined && rule.path !== undefined) {
    return { param: `${at}.path`, reason: "is another name of json_pointer: give one of them" }
  }
  if (pointer === undefined) return { param: `${at}.json_pointer`, reason: "is required" }
  return first(
    [`${at}.json_pointer`, refusedPointer(pointer)],
    [`${at}.name`, optional(refusedText, rule.name)],
    [
      `${at}.equals`,
      String(rule.equals).length > maxTextLength ? `must have at most ${maxTextLength} characters` : undefined
    ],
    [`${at}.estimated_cost_usd`, refusedCost(rule.cost_mode, rule.estimated_cost_usd ?? null)]
  )
}

const endpointBreach = (endpoint: EndpointInput, at: string): Breach | undefined =>
  first(
    [`${at}.path_template`, refusedTemplate(endpoint.path_template)],
    [`${at}.operation_id`, optional(refusedText, endpoint.operation_id)],
    [`${at}.summary`, (endpoint.summary ?? "").length > 1024 ? "must have at most 1024 characters" : undefined]
  )

const endpointPricingBreach = (rule: EndpointPricingRuleInput, at: string): Breach | undefined =>
  endpointBreach(rule, at) ??
  first([`${at}.estimated_cost_usd`, refusedCost(rule.cost_mode, rule.estimated_cost_usd ?? null)])

const repeated = (param: string, values: ReadonlyArray<string>): Breach | undefined => {
  const index = values.findIndex((value, at) => values.indexOf(value) !== at)
  return index === -1 ? undefined : { param: `${param}.${index}`, reason: "stands there twice" }
}

const endpointKey = ({ method, path_template }: EndpointInput): string =>
  `${method} ${path_template.replace(/\{[^{}]*\}/g, "{}")}`

/** The first rule that `input` breaks; the price is looked at as it will be. */
export const breachOf = (
  input: Omit<NewService, "name">,
  price: Pick<Service, "cost_mode" | "estimated_cost_usd">
): Breach | undefined => {
  const {
    allowed_methods,
    endpoint_pricing_rules = [],
    fallback_services = [],
    health_check_path,
    openapi_endpoints = [],
    openapi_source_path,
    pricing_rules = [],
    route_pattern,
    studio_service_id
  } = input
  return (
    first(
      ["studio_service_id", optional(refusedText, studio_service_id)],
      ["route_pattern", optional(refusedRoutePattern, route_pattern)],
      ["health_check_path", optional(refusedPath, health_check_path)],
      ["openapi_source_path", optional(refusedPath, openapi_source_path)],
      ["allowed_methods", allowed_methods?.length === 0 ? "must name at least one method" : undefined],
      ["estimated_cost_usd", refusedCost(price.cost_mode, price.estimated_cost_usd)]
    ) ??
    repeated("allowed_methods", allowed_methods ?? []) ??
    each("pricing_rules", pricing_rules ?? [], pricingBreach) ??
    each("openapi_endpoints", openapi_endpoints ?? [], endpointBreach) ??
    repeated("openapi_endpoints", (openapi_endpoints ?? []).map(endpointKey)) ??
    each("endpoint_pricing_rules", endpoint_pricing_rules ?? [], endpointPricingBreach) ??
    repeated("endpoint_pricing_rules", (endpoint_pricing_rules ?? []).map(endpointKey)) ??
    each("fallback_services", fallback_services ?? [], (name, param) =>
      serviceNamePattern.test(name) ? undefined : { param, reason: refusedServiceName }
    )
  )
}

const refusedServiceName =
  "must be a lower-case DNS label: 1 to 64 letters, digits and hyphens, without a hyphen at either end"

export const refusedName = (name: string): Refusal => (serviceNamePattern.test(name) ? undefined : refusedServiceName)

/** Rules in the one form in which they are kept. */
export const pricingRule = ({ equals, name, path, ...rule }: PricingRuleInput): PricingRule => ({
  name: name ?? null,
  json_pointer: rule.json_pointer ?? path ?? "",
  equals: String(equals),
  cost_mode: rule.cost_mode,
  estimated_cost_usd: rule.estimated_cost_usd ?? null
})

export const endpointRule = (rule: EndpointPricingRuleInput): EndpointPricingRule => ({
  method: rule.method,
  path_template: rule.path_template,
  operation_id: rule.operation_id ?? null,
  cost_mode: rule.cost_mode,
  estimated_cost_usd: rule.estimated_cost_usd ?? null
})

export const endpointOf = (endpoint: EndpointInput) => ({
  method: endpoint.method,
  path_template: endpoint.path_template,
  operation_id: endpoint.operation_id ?? null,
  summary: endpoint.summary ?? null,
  svc_default: endpoint.svc_default ?? false
})
