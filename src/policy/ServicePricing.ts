import { unescape } from "node:querystring"
import type { UsageEstimate } from "./Estimate.ts"
import * as JsonMembers from "./facts/JsonMembers.ts"
import { toNanos } from "./Price.ts"
import type { CostMode, Endpoint, EndpointPricingRule, PricingRule } from "./routes/Service.ts"
import { foldedSegment } from "./routes/UpstreamPaths.ts"

/** What an operator said a service costs, made ready for requests. */
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
  readonly rule: A
  /** Without escapes. */
  readonly segments: ReadonlyArray<string>
  /** The same as a lax upstream matches them, without the empty one after a slash at the end. */
  readonly folded: ReadonlyArray<string>
  /** How many segments are plain text: the more, the closer the template is to what it fits. */
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

/** The template that `method` and `path` are an instance of, the one with the most plain segments before others. */
export const closestTemplate = <A extends { readonly method: string }>(
  templates: ReadonlyArray<Templated<A>>,
  method: string,
  path: string
): A | undefined => {
  if (templates.length === 0) return undefined
  const wanted = segmentsOf(path)
  return templates.find(({ rule, segments }) => rule.method === method && isInstance(segments, wanted))?.rule
}

const isInstance = (template: ReadonlyArray<string>, segments: ReadonlyArray<string>): boolean =>
  template.length === segments.length &&
  template.every((part, index) => (isParameter(part) ? segments[index] !== "" : part === segments[index]))

/**
 * The template of an endpoint with a price of its own that a lax upstream would take `path` for, although it is written
 * otherwise: with a slash at its end, in other letter case, with blanks. It would cost what other paths do.
 */
export const misspelledTemplate = ({ endpointRules }: Pricing, method: string, path: string): string | undefined => {
  if (endpointRules.length === 0) return undefined
  const wanted = segmentsOf(path)
  const folded = foldedEnd(wanted.map(foldedSegment))
  const meant = endpointRules.find(
    ({ folded: template, rule }) => rule.method === method && isInstance(template, folded)
  )
  const written = endpointRules.find(({ rule, segments }) => rule.method === method && isInstance(segments, wanted))
  return meant !== undefined && (written === undefined || meant.literalCount > written.literalCount)
    ? meant.rule.path_template
    : undefined
}

/** What one request costs, and by which rule. */
export interface ServicePrice extends Cost {
  /** `rule`: of an endpoint or of the body; `default`: the service's own. */
  readonly by: "default" | "rule"
  readonly ruleName: string | undefined
}

/** The text at a JSON pointer of the request's body; `undefined` where there is nothing to compare. */
export type SelectText = (pointer: string) => string | undefined

/** What the price of a request depends on beside its path, as far as it must be known. */
export const dependsOnBody = (pricing: Pricing, method: string, path: string): boolean =>
  pricing.bodyRules.length > 0 && !isFree(endpointPrice(pricing, method, path))

/** An endpoint's own rule says so: nothing of the body changes it. */
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

/**
 * The endpoint's price or the service's; then the first rule that the body fits. A free endpoint is free whatever its
 * body says.
 */
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

/**
 * What to reserve, in nano-dollars. A body that is known has one price. Of one that is not, and of an answer that will
 * say its price itself, the dearest that is written down.
 */
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

/** The texts of a JSON body: strings as they are, numbers and booleans as JSON writes them. */
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

/** RFC 6901. */
export const pointerTokens = (pointer: string): ReadonlyArray<string> =>
  pointer
    .split("/")
    .slice(1)
    .map((token) => token.replace(/~1/g, "/").replace(/~0/g, "~"))

/**
 * The first member of the JSON `text` on the way of a price rule that two readers could read differently: it is there
 * twice, with escapes, or in other letter case. Every value is walked once for each level of the rules' pointers.
 */
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
    const meant = pointersByName.get(folded)
    if (meant === undefined) continue
    if (escaped || seen.has(folded) || !meant.some(([name]) => name === key)) return key
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

/** The fields of a form by which it may say what stands at a pointer: plainly, or in ways that are not read here. */
export const formFieldsOf = (
  pointer: string
): { readonly plain: string | undefined; readonly other: ReadonlyArray<string> } => {
  const [name, ...deeper] = pointerTokens(pointer)
  if (name === undefined) return { plain: undefined, other: [] }
  return deeper.length === 0
    ? { plain: name, other: [] }
    : { plain: undefined, other: [name, [name, ...deeper].join(".")] }
}

/** The fields of a form are members of its top level. */
export const selectFields =
  (fields: ReadonlyMap<string, string>): SelectText =>
  (pointer) => {
    const [name, ...deeper] = pointerTokens(pointer)
    return name === undefined || deeper.length > 0 ? undefined : fields.get(name)
  }

export const selectNothing: SelectText = () => undefined
