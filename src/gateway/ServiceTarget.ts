import { GatewayError } from "./GatewayError.ts"
import type { PolicyRoute, RouteConfig } from "./model/CanonicalRoute.ts"
import type { CanonicalPath } from "./model/Path.ts"
import { serviceRoute } from "./model/RouteTable.ts"
import { serviceNamePattern } from "./model/Service.ts"
import * as ServiceTable from "./ServiceTable.ts"
import type { Target } from "./Target.ts"

/** A request that a registered service answers. */
export interface ServiceCall {
  readonly service: ServiceTable.Service
  readonly method: string
  /** The path as the service sees it, canonical and without query: what prices and records go by. */
  readonly path: string
}

/** The target of a path that some service's pattern fits, if one does. What is the gateway's own is never asked about. */
export const byPattern = (
  method: string,
  target: string,
  { path, segments }: CanonicalPath,
  services: ServiceTable.ServiceTable
): Target | undefined => {
  const [first, second] = segments
  if (first === "v1" || (first === "providers" && second === "compat")) return undefined
  const service = ServiceTable.match(services, method, path)
  if (service === undefined) return undefined
  const below = service.pattern.endsWith("/*")
  return callable(service, method, target, path, segments, below ? service.pattern.split("/").length - 2 : 0)
}

/** The target of `/services/<name>…`, or of one of the paths that a service's name alone is. It never falls through. */
export const byName = (
  method: string,
  target: string,
  { path, segments }: CanonicalPath,
  services: ServiceTable.ServiceTable,
  name: string
): Target => {
  const own = segments.length === 1 && segments[0] === name
  const route = serviceRoute(path)
  if (!serviceNamePattern.test(name)) return closed(route, target, illFormed)
  const service = services.byName.get(name)
  if (service === undefined) return closed(route, target, unknown)
  if (!service.methods.includes(method)) return closed(route, target, otherMethods(service))
  return callable(service, method, target, path, segments, own ? 0 : 2)
}

/** `prefix`: how many segments of the path are the gateway's. */
const callable = (
  service: ServiceTable.Service,
  method: string,
  target: string,
  path: string,
  segments: ReadonlyArray<string>,
  prefix: number
): Target => {
  const route = serviceRoute(path)
  const rest = prefix === 0 ? path : `/${segments.slice(prefix).join("/")}`
  const open: Target = {
    routeId: "service",
    route,
    provider: "internal-service",
    family: "a",
    config: service.config,
    target: prefix === 0 ? target : behind(target, prefix),
    accounting: "answer",
    usageOnRequest: false,
    service: { service, method, path: rest }
  }
  if (!service.enabled) return { ...open, closed: disabled }
  const missing = ServiceTable.missing(service)
  return missing.length === 0 ? open : { ...open, closed: incomplete(missing) }
}

const closed = (route: PolicyRoute, target: string, refusal: GatewayError): Target => ({
  routeId: "service",
  route,
  provider: "internal-service",
  family: "a",
  config: unset,
  target,
  accounting: "answer",
  usageOnRequest: false,
  closed: refusal
})

/** The settings of a service that there is not: nothing comes as far as using them. */
const unset: RouteConfig = {
  enabled: true,
  mode: "managed_by_gateway",
  timeoutMs: 60_000,
  maxRequestBodyBytes: 2_097_152,
  maxResponseBodyBytes: Number.POSITIVE_INFINITY
}

/** The canonical form keeps segments one to one, so the raw target is cut at the same place. */
export const behind = (target: string, segments: number): string => {
  let end = 0
  for (let cut = 0; cut < segments; cut++) {
    const length = target.slice(end + 1).search(/[/?]/)
    if (length === -1) return "/"
    end += 1 + length
  }
  const rest = target.slice(end)
  return rest.startsWith("/") ? rest : `/${rest}`
}

const unknown = new GatewayError({
  code: "missing_service",
  message: "No service of that name is registered with this gateway."
})

const illFormed = new GatewayError({
  code: "invalid_service_payload",
  message: "The path must name a service: /services/<name>, a lower-case DNS label of at most 64 characters."
})

const disabled = new GatewayError({
  code: "disabled_service",
  message: "The service is disabled; an operator can enable it."
})

const incomplete = (missing: ReadonlyArray<string>) =>
  new GatewayError({
    code: "incomplete_service",
    message: `The service cannot be called yet: it lacks ${missing.join(" and ")}. An operator can set that.`
  })

const otherMethods = ({ methods }: ServiceTable.Service) =>
  new GatewayError({ code: "unsupported_route", message: `This service is served for ${methods.join(" and ")} only.` })
