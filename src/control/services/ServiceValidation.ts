import type { EndpointPricingRule, PricingRule } from "../../policy/routes/Service.ts"
import { refusedRoutePattern, serviceNamePattern } from "../../policy/routes/Service.ts"
import type {
  EndpointInput,
  EndpointPricingRuleInput,
  NewService,
  PricingRuleInput,
  Service
} from "../api/services/ServicesApi.ts"
import type { Violation } from "../store/Validation.ts"

export interface RuleViolation {
  readonly param: string
  readonly reason: string
}

const maxTextLength = 256
const maxPathLength = 512
const controlCharacter = /\p{Cc}/u

const refusedText = (text: string): Violation =>
  text.length === 0 || text.length > maxTextLength || controlCharacter.test(text)
    ? `must have 1 to ${maxTextLength} characters, none of them a control character`
    : undefined

/** A path of the upstream, without a query string. */
const refusedPath = (path: string): Violation =>
  path.length <= maxPathLength && /^\/[\x21-\x7e]*$/.test(path) && !/\/\/|[?#\\]/.test(path)
    ? undefined
    : `must be a path of at most ${maxPathLength} visible ASCII characters that begins with /, without //, ?, # or backslash`

/** A non-empty JSON pointer (RFC 6901): `~` is written as `~0`, and `/` within a name as `~1`. */
const refusedPointer = (pointer: string): Violation =>
  pointer.length <= maxPathLength && /^(?:\/(?:[^~/]|~[01])*)+$/u.test(pointer)
    ? undefined
    : `must be a JSON pointer such as /options/quality, of at most ${maxPathLength} characters`

const refusedTemplate = (template: string): Violation => {
  const refusal = refusedPath(template)
  if (refusal !== undefined) return refusal
  return template.split("/").every((segment) => /^(?:\{[^{}]+\}|[^{}]*)$/.test(segment))
    ? undefined
    : "must have parameters as whole segments, such as /items/{id}"
}

const refusedCost = (mode: Service["cost_mode"], cost: number | null): Violation =>
  mode === "fixed" && cost === null ? "is required when cost_mode is fixed" : undefined

const firstViolation = (
  ...checks: ReadonlyArray<readonly [param: string, refusal: Violation]>
): RuleViolation | undefined => {
  for (const [param, reason] of checks) if (reason !== undefined) return { param, reason }
  return undefined
}

const ifPresent = (refused: (text: string) => Violation, text: string | null | undefined): Violation =>
  text === null || text === undefined ? undefined : refused(text)

const checkEach = <A>(
  param: string,
  items: ReadonlyArray<A>,
  rule: (item: A, at: string) => RuleViolation | undefined
): RuleViolation | undefined => {
  for (const [index, item] of items.entries()) {
    const violation = rule(item, `${param}.${index}`)
    if (violation !== undefined) return violation
  }
  return undefined
}

const pricingRuleViolation = (rule: PricingRuleInput, at: string): RuleViolation | undefined => {
  const pointer = rule.json_pointer ?? rule.path
  if (rule.json_pointer !== undefined && rule.path !== undefined) {
    return { param: `${at}.path`, reason: "is an alias of json_pointer: send only one of the two" }
  }
  if (pointer === undefined) return { param: `${at}.json_pointer`, reason: "is required" }
  return firstViolation(
    [`${at}.json_pointer`, refusedPointer(pointer)],
    [`${at}.name`, ifPresent(refusedText, rule.name)],
    [
      `${at}.equals`,
      String(rule.equals).length > maxTextLength ? `must have at most ${maxTextLength} characters` : undefined
    ],
    [`${at}.estimated_cost_usd`, refusedCost(rule.cost_mode, rule.estimated_cost_usd ?? null)]
  )
}

const endpointViolation = (endpoint: EndpointInput, at: string): RuleViolation | undefined =>
  firstViolation(
    [`${at}.path_template`, refusedTemplate(endpoint.path_template)],
    [`${at}.operation_id`, ifPresent(refusedText, endpoint.operation_id)],
    [`${at}.summary`, (endpoint.summary ?? "").length > 1024 ? "must have at most 1024 characters" : undefined]
  )

const endpointPricingViolation = (rule: EndpointPricingRuleInput, at: string): RuleViolation | undefined =>
  endpointViolation(rule, at) ??
  firstViolation([`${at}.estimated_cost_usd`, refusedCost(rule.cost_mode, rule.estimated_cost_usd ?? null)])

const duplicateViolation = (param: string, values: ReadonlyArray<string>): RuleViolation | undefined => {
  const index = values.findIndex((value, at) => values.indexOf(value) !== at)
  return index === -1 ? undefined : { param: `${param}.${index}`, reason: "is listed twice" }
}

const endpointKey = ({ method, path_template }: EndpointInput): string =>
  `${method} ${path_template.replace(/\{[^{}]*\}/g, "{}")}`

/** Returns the first rule that `input` violates. `price` is the price after the change. */
export const findViolation = (
  input: Omit<NewService, "name">,
  price: Pick<Service, "cost_mode" | "estimated_cost_usd">
): RuleViolation | undefined => {
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
    firstViolation(
      ["studio_service_id", ifPresent(refusedText, studio_service_id)],
      ["route_pattern", ifPresent(refusedRoutePattern, route_pattern)],
      ["health_check_path", ifPresent(refusedPath, health_check_path)],
      ["openapi_source_path", ifPresent(refusedPath, openapi_source_path)],
      ["allowed_methods", allowed_methods?.length === 0 ? "must name at least one method" : undefined],
      ["estimated_cost_usd", refusedCost(price.cost_mode, price.estimated_cost_usd)]
    ) ??
    duplicateViolation("allowed_methods", allowed_methods ?? []) ??
    checkEach("pricing_rules", pricing_rules ?? [], pricingRuleViolation) ??
    checkEach("openapi_endpoints", openapi_endpoints ?? [], endpointViolation) ??
    duplicateViolation("openapi_endpoints", (openapi_endpoints ?? []).map(endpointKey)) ??
    checkEach("endpoint_pricing_rules", endpoint_pricing_rules ?? [], endpointPricingViolation) ??
    duplicateViolation("endpoint_pricing_rules", (endpoint_pricing_rules ?? []).map(endpointKey)) ??
    checkEach("fallback_services", fallback_services ?? [], (name, param) =>
      serviceNamePattern.test(name) ? undefined : { param, reason: serviceNameRule }
    )
  )
}

const serviceNameRule =
  "must be a lower-case DNS label: 1 to 64 letters, digits and hyphens, without a hyphen at either end"

export const refusedName = (name: string): Violation => (serviceNamePattern.test(name) ? undefined : serviceNameRule)

export const toPricingRule = ({ equals, name, path, ...rule }: PricingRuleInput): PricingRule => ({
  name: name ?? null,
  json_pointer: rule.json_pointer ?? path ?? "",
  equals: String(equals),
  cost_mode: rule.cost_mode,
  estimated_cost_usd: rule.estimated_cost_usd ?? null
})

export const toEndpointPricingRule = (rule: EndpointPricingRuleInput): EndpointPricingRule => ({
  method: rule.method,
  path_template: rule.path_template,
  operation_id: rule.operation_id ?? null,
  cost_mode: rule.cost_mode,
  estimated_cost_usd: rule.estimated_cost_usd ?? null
})

export const toEndpoint = (endpoint: EndpointInput) => ({
  method: endpoint.method,
  path_template: endpoint.path_template,
  operation_id: endpoint.operation_id ?? null,
  summary: endpoint.summary ?? null,
  svc_default: endpoint.svc_default ?? false
})
