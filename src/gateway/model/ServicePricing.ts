import type { Wanted } from "./Estimate.ts"
import { toNanos } from "./Price.ts"
import type { CostMode, Endpoint, EndpointPricingRule, PricingRule } from "./Service.ts"

/** What an operator said a service costs (reference §9.5), made ready for requests. */
export interface Pricing {
  readonly base: Cost
  readonly bodyRules: ReadonlyArray<PricingRule>
  readonly endpointRules: ReadonlyArray<Templated<EndpointPricingRule>>
  /** Of the service's OpenAPI document. */
  readonly endpoints: ReadonlyArray<Templated<Endpoint>>
}

interface Cost {
  readonly cost_mode: CostMode
  readonly estimated_cost_usd: number | null
}

export interface Templated<A> {
  readonly of: A
  readonly segments: ReadonlyArray<string>
  /** How many segments are plain text: the more, the closer the template is to what it fits. */
  readonly plain: number
}

export const of = (row: {
  readonly cost_mode: CostMode
  readonly estimated_cost_usd: number | null
  readonly pricing_rules: ReadonlyArray<PricingRule>
  readonly endpoint_pricing_rules: ReadonlyArray<EndpointPricingRule>
  readonly openapi_endpoints: ReadonlyArray<Endpoint>
}): Pricing => ({
  base: { cost_mode: row.cost_mode, estimated_cost_usd: row.estimated_cost_usd },
  bodyRules: row.pricing_rules,
  endpointRules: closestFirst(row.endpoint_pricing_rules),
  endpoints: closestFirst(row.openapi_endpoints)
})

export const free: Pricing = {
  base: { cost_mode: "none", estimated_cost_usd: null },
  bodyRules: [],
  endpointRules: [],
  endpoints: []
}

const isParameter = (segment: string): boolean => segment.startsWith("{") && segment.endsWith("}")

const closestFirst = <A extends { readonly path_template: string }>(rules: ReadonlyArray<A>) =>
  rules
    .map((rule): Templated<A> => {
      const segments = rule.path_template.slice(1).split("/")
      return { of: rule, segments, plain: segments.filter((segment) => !isParameter(segment)).length }
    })
    .sort((a, b) => b.plain - a.plain)

/** The template that `method` and `path` are an instance of, the one with the most plain segments before others. */
export const closest = <A extends { readonly method: string }>(
  templates: ReadonlyArray<Templated<A>>,
  method: string,
  path: string
): A | undefined => {
  if (templates.length === 0) return undefined
  const wanted = path.slice(1).split("/")
  return templates.find(
    ({ of, segments }) =>
      of.method === method &&
      segments.length === wanted.length &&
      segments.every((part, index) => (isParameter(part) ? wanted[index] !== "" : part === wanted[index]))
  )?.of
}

/** What one request costs, and by which rule. */
export interface Price extends Cost {
  /** `rule`: of an endpoint or of the body; `default`: the service's own. */
  readonly by: "default" | "rule"
  readonly ruleName: string | undefined
}

/** The text at a JSON pointer of the request's body; `undefined` where there is nothing to compare. */
export type Select = (pointer: string) => string | undefined

/** What the price of a request depends on beside its path, as far as it must be known. */
export const dependsOnBody = (pricing: Pricing, method: string, path: string): boolean =>
  pricing.bodyRules.length > 0 && !isFree(endpointPrice(pricing, method, path))

/** An endpoint's own rule says so: nothing of the body changes it. */
const isFree = ({ by, cost_mode }: Price): boolean => by === "rule" && cost_mode === "none"

const endpointPrice = (pricing: Pricing, method: string, path: string): Price => {
  const rule = closest(pricing.endpointRules, method, path)
  return rule === undefined
    ? { ...pricing.base, by: "default", ruleName: undefined }
    : {
        cost_mode: rule.cost_mode,
        estimated_cost_usd: rule.estimated_cost_usd,
        by: "rule",
        ruleName: rule.operation_id ?? `${rule.method} ${rule.path_template}`
      }
}

/**
 * The endpoint's price or the service's; then the first rule that the body fits. A free endpoint is free whatever its
 * body says.
 */
export const resolve = (pricing: Pricing, method: string, path: string, select: Select): Price => {
  const base = endpointPrice(pricing, method, path)
  if (isFree(base)) return base
  const rule = pricing.bodyRules.find(({ equals, json_pointer }) => select(json_pointer) === equals)
  return rule === undefined
    ? base
    : {
        cost_mode: rule.cost_mode,
        estimated_cost_usd: rule.estimated_cost_usd,
        by: "rule",
        ruleName: rule.name ?? undefined
      }
}

/**
 * What to reserve, in nano-dollars. A body that is known has one price. Of one that is not, and of an answer that will
 * say its price itself, the dearest that is written down.
 */
export const reservation = (
  pricing: Pricing,
  method: string,
  path: string,
  price: Price | undefined
): Pick<Wanted, "nanos" | "nanosGuessed"> => {
  if (price?.cost_mode === "none") return { nanos: 0, nanosGuessed: false }
  if (price?.cost_mode === "fixed") return { nanos: toNanos(price.estimated_cost_usd ?? 0), nanosGuessed: false }
  if (price?.estimated_cost_usd != null) return { nanos: toNanos(price.estimated_cost_usd), nanosGuessed: true }
  const base = endpointPrice(pricing, method, path)
  const candidates: ReadonlyArray<Cost> = isFree(base) ? [base] : [base, ...pricing.bodyRules]
  const dearest = candidates.reduce(
    (most, { cost_mode, estimated_cost_usd }) =>
      cost_mode === "fixed" ? Math.max(most, estimated_cost_usd ?? 0) : most,
    0
  )
  return { nanos: toNanos(dearest), nanosGuessed: true }
}

/** The texts of a JSON body: strings as they are, numbers and booleans as JSON writes them. */
export const selectJson =
  (json: unknown): Select =>
  (pointer) => {
    let value = json
    for (const token of tokensOf(pointer)) {
      if (!holds(value, token)) return undefined
      value = value[token]
    }
    return typeof value === "string"
      ? value
      : typeof value === "number" || typeof value === "boolean"
        ? String(value)
        : undefined
  }

const holds = (value: unknown, name: string): value is { readonly [name: string]: unknown } =>
  typeof value === "object" &&
  value !== null &&
  Object.hasOwn(value, name) &&
  !(Array.isArray(value) && name === "length")

/** RFC 6901. */
export const tokensOf = (pointer: string): ReadonlyArray<string> =>
  pointer
    .split("/")
    .slice(1)
    .map((token) => token.replace(/~1/g, "/").replace(/~0/g, "~"))

/** The fields of a form are members of its top level. */
export const selectFields =
  (fields: ReadonlyMap<string, string>): Select =>
  (pointer) => {
    const [name, ...deeper] = tokensOf(pointer)
    return name === undefined || deeper.length > 0 ? undefined : fields.get(name)
  }

export const selectNothing: Select = () => undefined
