import { Schema } from "effect"
import { isPattern } from "./Path.ts"
import { sensitiveGroup } from "./UpstreamPaths.ts"

/** A lower-case DNS label: how a service is called in paths, links, policies and records. */
export const serviceNamePattern = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/
export const ServiceName = Schema.String.check(
  Schema.isPattern(serviceNamePattern, { expected: "a lower-case DNS label of 1 to 64 characters" })
)

/** Services with a path of their own beside `/services/<name>`. */
export const builtInServices = ["summary", "translation", "ocr", "embeddings"] as const

export const ServiceMethod = Schema.Literals(["GET", "POST", "PUT", "PATCH", "DELETE"])
export type ServiceMethod = typeof ServiceMethod.Type

/** How a registered service is paid for: not at all, a price for each request, or what its answer says. */
export const CostMode = Schema.Literals(["none", "fixed", "passthrough"])
export type CostMode = typeof CostMode.Type

const Dollars = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 9_000_000 }))
/** With `fixed` the price of a request; with `passthrough` what is reserved for one. */
export const EstimatedCost = Schema.NullOr(Dollars)

/** A price for requests whose body says `equals` at `json_pointer`. The first rule that fits decides. */
export const PricingRule = Schema.Struct({
  name: Schema.NullOr(Schema.String),
  json_pointer: Schema.String,
  equals: Schema.String,
  cost_mode: CostMode,
  estimated_cost_usd: EstimatedCost
})
export type PricingRule = typeof PricingRule.Type

/** Of a service's OpenAPI document: `{x}` in a template stands for one segment. */
export const EndpointMethod = Schema.Literals(["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS"])
export const Endpoint = Schema.Struct({
  method: EndpointMethod,
  path_template: Schema.String,
  operation_id: Schema.NullOr(Schema.String),
  summary: Schema.NullOr(Schema.String),
  /** An operational endpoint (health, events, …) that no user is charged for. */
  svc_default: Schema.Boolean
})
export type Endpoint = typeof Endpoint.Type

/** A price for one endpoint. */
export const EndpointPricingRule = Schema.Struct({
  method: EndpointMethod,
  path_template: Schema.String,
  operation_id: Schema.NullOr(Schema.String),
  cost_mode: CostMode,
  estimated_cost_usd: EstimatedCost
})
export type EndpointPricingRule = typeof EndpointPricingRule.Type

/** What a service still needs before it can be called, in the order in which it is told. */
export const RuntimeField = Schema.Literals(["upstream_base_url", "credential"])
export type RuntimeField = typeof RuntimeField.Type

export const missingRuntimeFields = (has: {
  readonly upstream: boolean
  readonly credential: boolean
}): ReadonlyArray<RuntimeField> => [
  ...(has.upstream ? [] : (["upstream_base_url"] as const)),
  ...(has.credential ? [] : (["credential"] as const))
]

export const defaultRoutePattern = (name: string): string =>
  builtInServices.some((own) => own === name) ? `/${name}` : `/services/${name}/*`

const maxPatternLength = 512

/** Paths that stay the gateway's own: nothing registered may take them, or stand above them. */
const reserved = ["/v1", "/admin-ui", "/providers/compat"]

/**
 * Why a route pattern cannot be taken, or `undefined`. Only the form that canonical paths have can ever match. A
 * pattern above what is the gateway's own (`/providers/*`) would seem to own it.
 */
export const refusedRoutePattern = (pattern: string): string | undefined => {
  if (pattern.length > maxPatternLength) return `must have at most ${maxPatternLength} characters`
  if (!isPattern(pattern)) {
    return "must be a path of letters, digits and - _ ~ . between single slashes; at its end it may have /*, for everything below"
  }
  const below = pattern.endsWith("/*")
  const path = below ? pattern.slice(0, -2) : pattern
  const taken = reserved.find(
    (own) => path === own || path.startsWith(`${own}/`) || (below && own.startsWith(`${path}/`))
  )
  if (taken !== undefined) return `must not cover ${taken}, which is the gateway's own`
  // services come before the wildcard: what it would close, or open to operators alone, must not be theirs to open
  const sensitive = sensitiveGroup(path)
  if (sensitive !== undefined) {
    return `must not lie in ${sensitive}, a sensitive path of the upstream, which its exposure settings govern; /services/<name>/* is always free`
  }
  return path === "/services" ? "must name a service below /services: /services/<name>/*" : undefined
}
