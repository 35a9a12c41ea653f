import { unescape } from "node:querystring"
import type { UsageEstimate } from "./Estimate.ts"
import * as JsonMembers from "./facts/JsonMembers.ts"
import { toNanos } from "./Price.ts"
import type { CostMode, Endpoint, EndpointPricingRule, PricingRule } from "./routes/Service.ts"
import { foldedSegment } from "./routes/UpstreamPaths.ts"

export interface Pricing {
  readonly base: Cost
  readonly bodyRules: ReadonlyArray<PricingRule>
  readonly endpointRules: ReadonlyArray<Templated<EndpointPricingRule>>
  readonly endpoints: ReadonlyArray<Templated<Endpoint>>
}

interface Cost {
  readonly cost_mode: CostMode
  readonly estimated_cost_usd: number | null
}

interface Templated<A> {
  readonly rule: A
  readonly segments: ReadonlyArray<string>
  /** The segments in normalized spelling, as a lenient upstream may compare them. Empty end segments are removed. */
  readonly folded: ReadonlyArray<string>
  /** The number of segments that are not parameters. The template with the highest number is the most specific. */
  readonly literalCount: number
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

export const freePricing: Pricing = {
  base: { cost_mode: "none", estimated_cost_usd: null },
  bodyRules: [],
  endpointRules: [],
  endpoints: []
}

const isParameter = (segment: string): boolean => segment.startsWith("{") && segment.endsWith("}")

const segmentsOf = (path: string): ReadonlyArray<string> => path.slice(1).split("/").map(unescape)

const foldedEnd = (segments: ReadonlyArray<string>): ReadonlyArray<string> =>
  segments.slice(0, segments.findLastIndex((segment) => segment !== "") + 1)

const closestFirst = <A extends { readonly path_template: string }>(rules: ReadonlyArray<A>) =>
  rules
    .map((rule): Templated<A> => {
      const segments = segmentsOf(rule.path_template)
      const folded = foldedEnd(segments.map((segment) => (isParameter(segment) ? segment : foldedSegment(segment))))
      return { rule, segments, folded, literalCount: folded.filter((segment) => !isParameter(segment)).length }
    })
    .sort((a, b) => b.literalCount - a.literalCount)

export const closestTemplate = <A extends { readonly method: string }>(
  templates: ReadonlyArray<Templated<A>>,
  method: string,
  path: string
): A | undefined => {
  if (templates.length === 0) return undefined
  const pathSegments = segmentsOf(path)
  return templates.find(({ rule, segments }) => rule.method === method && isInstance(segments, pathSegments))?.rule
}

const isInstance = (template: ReadonlyArray<string>, segments: ReadonlyArray<string>): boolean =>
  template.length === segments.length &&
  template.every((part, index) => (isParameter(part) ? segments[index] !== "" : part === segments[index]))

/** Finds the priced endpoint that a lenient upstream may serve for a misspelled path, bypassing the price. */
export const misspelledTemplate = ({ endpointRules }: Pricing, method: string, path: string): string | undefined => {
  if (endpointRules.length === 0) return undefined
  const pathSegments = segmentsOf(path)
  const folded = foldedEnd(pathSegments.map(foldedSegment))
  const lenientMatch = endpointRules.find(
    ({ folded: template, rule }) => rule.method === method && isInstance(template, folded)
  )
  const exactMatch = endpointRules.find(
    ({ rule, segments }) => rule.method === method && isInstance(segments, pathSegments)
  )
  return lenientMatch !== undefined && (exactMatch === undefined || lenientMatch.literalCount > exactMatch.literalCount)
    ? lenientMatch.rule.path_template
    : undefined
}

export interface ServicePrice extends Cost {
  /** `rule`: the price of an endpoint rule or a body rule. `default`: the service's own price. */
  readonly by: "default" | "rule"
  readonly ruleName: string | undefined
}

export type SelectText = (pointer: string) => string | undefined

export const dependsOnBody = (pricing: Pricing, method: string, path: string): boolean =>
  pricing.bodyRules.length > 0 && !isFree(endpointPrice(pricing, method, path))

/** An endpoint rule with `none` makes the request free, whatever its body contains. */
const isFree = ({ by, cost_mode }: ServicePrice): boolean => by === "rule" && cost_mode === "none"

const endpointPrice = (pricing: Pricing, method: string, path: string): ServicePrice => {
  const rule = closestTemplate(pricing.endpointRules, method, path)
  return rule === undefined
    ? { ...pricing.base, by: "default", ruleName: undefined }
    : {
        cost_mode: rule.cost_mode,
        estimated_cost_usd: rule.estimated_cost_usd,
        by: "rule",
        ruleName: rule.operation_id ?? `${rule.method} ${rule.path_template}`
      }
}

/** Returns the price of the first body rule that matches, else of the endpoint, else of the service. */
export const resolve = (pricing: Pricing, method: string, path: string, select: SelectText): ServicePrice => {
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

/** Reserves the highest configured price if the price depends on an unread body or on the response. */
export const reservation = (
  pricing: Pricing,
  method: string,
  path: string,
  price: ServicePrice | undefined
): Pick<UsageEstimate, "nanos" | "nanosEstimated"> => {
  if (price?.cost_mode === "none") return { nanos: 0, nanosEstimated: false }
  if (price?.cost_mode === "fixed") return { nanos: toNanos(price.estimated_cost_usd ?? 0), nanosEstimated: false }
  if (price?.estimated_cost_usd != null) return { nanos: toNanos(price.estimated_cost_usd), nanosEstimated: true }
  const base = endpointPrice(pricing, method, path)
  const candidates: ReadonlyArray<Cost> = isFree(base) ? [base] : [base, ...pricing.bodyRules]
  const dearest = candidates.reduce(
    (most, { cost_mode, estimated_cost_usd }) =>
      cost_mode === "fixed" ? Math.max(most, estimated_cost_usd ?? 0) : most,
    0
  )
  return { nanos: toNanos(dearest), nanosEstimated: true }
}

/** Returns the value at a JSON pointer as text. Numbers and booleans are written as in JSON. */
export const selectJson =
  (json: unknown): SelectText =>
  (pointer) => {
    let value = json
    for (const token of pointerTokens(pointer)) {
      if (!hasMember(value, token)) return undefined
      value = value[token]
    }
    return typeof value === "string"
      ? value
      : typeof value === "number" || typeof value === "boolean"
        ? String(value)
        : undefined
  }

const hasMember = (value: unknown, name: string): value is { readonly [name: string]: unknown } =>
  typeof value === "object" &&
  value !== null &&
  Object.hasOwn(value, name) &&
  !(Array.isArray(value) && name === "length")

/** Parses a JSON pointer (RFC 6901). */
export const pointerTokens = (pointer: string): ReadonlyArray<string> =>
  pointer
    .split("/")
    .slice(1)
    .map((token) => token.replace(/~1/g, "/").replace(/~0/g, "~"))

/** Finds a member that sets the price and that parsers may read differently (duplicated, escaped, other case). */
export const ambiguousMember = ({ bodyRules }: Pricing, text: string): string | undefined =>
  ambiguousIn(
    text,
    bodyRules.map(({ json_pointer }) => pointerTokens(json_pointer))
  )

const ambiguousIn = (text: string, pointers: ReadonlyArray<ReadonlyArray<string>>): string | undefined => {
  const pointersByName = new Map<string, Array<ReadonlyArray<string>>>()
  for (const [name, ...deeper] of pointers) {
    if (name === undefined) continue
    const pointersBelow = pointersByName.get(foldedSegment(name))
    if (pointersBelow === undefined) pointersByName.set(foldedSegment(name), [[name, ...deeper]])
    else pointersBelow.push([name, ...deeper])
  }
  if (pointersByName.size === 0) return undefined
  const below = (name: string, value: string) =>
    ambiguousIn(
      value,
      (pointersByName.get(foldedSegment(name)) ?? []).map(([, ...deeper]) => deeper)
    )
  const seen = new Set<string>()
  for (const { end, escaped, key, valueStart } of JsonMembers.topLevel(text)) {
    const folded = foldedSegment(key)
    const rulePointers = pointersByName.get(folded)
    if (rulePointers === undefined) continue
    if (escaped || seen.has(folded) || !rulePointers.some(([name]) => name === key)) return key
    seen.add(folded)
    const deeper = below(key, text.slice(valueStart, end))
    if (deeper !== undefined) return deeper
  }
  if (!text.trimStart().startsWith("[")) return undefined
  for (const [index, item] of JsonMembers.items(text).entries()) {
    const deeper = pointersByName.has(String(index)) ? below(String(index), item) : undefined
    if (deeper !== undefined) return deeper
  }
  return undefined
}

/** Returns the names of form fields for a JSON pointer. `other` lists names that only some parsers accept. */
export const formFieldsOf = (
  pointer: string
): { readonly plain: string | undefined; readonly other: ReadonlyArray<string> } => {
  const [name, ...deeper] = pointerTokens(pointer)
  if (name === undefined) return { plain: undefined, other: [] }
  return deeper.length === 0
    ? { plain: name, other: [] }
    : { plain: undefined, other: [name, [name, ...deeper].join(".")] }
}

export const selectFields =
  (fields: ReadonlyMap<string, string>): SelectText =>
  (pointer) => {
    const [name, ...deeper] = pointerTokens(pointer)
    return name === undefined || deeper.length > 0 ? undefined : fields.get(name)
  }

export const selectNothing: SelectText = () => undefined
