import { Schema } from "effect"
import { isPattern } from "./Path.ts"
import { sensitiveGroup } from "./UpstreamPaths.ts"

/** A lower-case DNS label. It names the service in paths, links, policies and records. */
export const serviceNamePattern = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/
export const ServiceName = Schema.String.check(
  Schema.isPattern(serviceNamePattern, { expected: "a lower-case DNS label of 1 to 64 characters" })
)

export const builtInServices = ["summary", "translation", "ocr", "embeddings"] as const

export const ServiceMethod = Schema.Literals(["GET", "POST", "PUT", "PATCH", "DELETE"])
export type ServiceMethod = typeof ServiceMethod.Type

/** A service costs nothing, a fixed price per request, or what its response reports. */
export const CostMode = Schema.Literals(["none", "fixed", "passthrough"])
export type CostMode = typeof CostMode.Type

const Dollars = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 9_000_000 }))
/** The price per request (`fixed`), or the amount to reserve before the response (`passthrough`). */
export const EstimatedCost = Schema.NullOr(Dollars)

/** The price of requests whose body has the value `equals` at `json_pointer`. The first rule that matches applies. */
export const PricingRule = Schema.Struct({
  name: Schema.NullOr(Schema.String),
  json_pointer: Schema.String,
  equals: Schema.String,
  cost_mode: CostMode,
  estimated_cost_usd: EstimatedCost
})
export type PricingRule = typeof PricingRule.Type

export const EndpointMethod = Schema.Literals(["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS"])
export const Endpoint = Schema.Struct({
  method: EndpointMethod,
  path_template: Schema.String,
  operation_id: Schema.NullOr(Schema.String),
  summary: Schema.NullOr(Schema.String),
  /** True for an operational endpoint (health, events, …), which costs nothing. */
  svc_default: Schema.Boolean
})
export type Endpoint = typeof Endpoint.Type

export const EndpointPricingRule = Schema.Struct({
  method: EndpointMethod,
  path_template: Schema.String,
  operation_id: Schema.NullOr(Schema.String),
  cost_mode: CostMode,
  estimated_cost_usd: EstimatedCost
})
export type EndpointPricingRule = typeof EndpointPricingRule.Type

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

/** Paths of the gateway. The path of a service must neither lie below one of them nor contain one. */
const reserved = ["/v1", "/admin-ui", "/providers/compat"]

export const refusedRoutePattern = (pattern: string): string | undefined => {
  if (pattern.length > maxPatternLength) return `must have at most ${maxPatternLength} characters`
  if (!isPattern(pattern)) {
    return "must be a path of letters, digits and - _ ~ . between single slashes; at its end it may have /*, for everything below"
  }
  const below = pattern.endsWith("/*")
  const path = below ? pattern.slice(0, -2) : pattern
  const covered = reserved.find(
    (own) => path === own || path.startsWith(`${own}/`) || (below && own.startsWith(`${path}/`))
  )
  if (covered !== undefined) return `must not cover ${covered}, which belongs to the gateway`
  // Services are matched before passthrough. They must not open paths that the exposure settings close.
  const sensitive = sensitiveGroup(path)
  if (sensitive !== undefined) {
    return `must not lie in ${sensitive}, a sensitive path of the upstream that its exposure settings govern; /services/<name>/* is always available`
  }
  return path === "/services" ? "must name a service below /services: /services/<name>/*" : undefined
}
