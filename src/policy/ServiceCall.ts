import type { CanonicalPath } from "./routes/Path.ts"
import { serviceNamePattern } from "./routes/Service.ts"
import * as ServicePricing from "./ServicePricing.ts"
import * as ServiceTable from "./ServiceTable.ts"

export interface ServiceCall {
  readonly service: ServiceTable.RegisteredService
  readonly method: string
  /** The canonical path as the service receives it, without query. Prices and usage records refer to this path. */
  readonly path: string
}

/** The error if the service cannot be called. Only authenticated clients receive it. */
export interface ServiceRefusal {
  readonly code:
    | "missing_service"
    | "disabled_service"
    | "incomplete_service"
    | "invalid_service_payload"
    | "unsupported_route"
  readonly message: string
}

export interface ServiceMatch {
  readonly call: ServiceCall | undefined
  /** The number of leading path segments to remove before forwarding, such as 2 for `/services/<name>`. */
  readonly prefix: number
  readonly closed: ServiceRefusal | undefined
}

/** Finds the registered service whose pattern matches the path. Patterns never match the gateway's own paths. */
export const byPattern = (
  services: ServiceTable.ServiceTable,
  method: string,
  path: CanonicalPath
): ServiceMatch | undefined => {
  const [first, second] = path.segments
  if (first === "v1" || (first === "providers" && second === "compat")) return undefined
  const service = ServiceTable.match(services, method, path.path)
  if (service === undefined) return undefined
  const below = service.pattern.endsWith("/*")
  return matchOf(service, method, path, below ? service.pattern.split("/").length - 2 : 0)
}

/** Finds the service that `/services/<name>…`, or a built-in path such as `/ocr`, names. */
export const byName = (
  services: ServiceTable.ServiceTable,
  method: string,
  path: CanonicalPath,
  name: string
): ServiceMatch => {
  const own = path.segments.length === 1 && path.segments[0] === name
  if (!serviceNamePattern.test(name)) return noMatch(illFormed)
  const service = services.byName.get(name)
  if (service === undefined) return noMatch(unknown)
  if (!service.methods.includes(method)) return noMatch(otherMethods(service))
  return matchOf(service, method, path, own ? 0 : 2)
}

const matchOf = (
  service: ServiceTable.RegisteredService,
  method: string,
  { path, segments }: CanonicalPath,
  prefix: number
): ServiceMatch => {
  const call = { service, method, path: prefix === 0 ? path : `/${segments.slice(prefix).join("/")}` }
  return { call, prefix, closed: unavailability(service) ?? misspelledEndpoint(call) }
}

const misspelledEndpoint = ({ method, path, service }: ServiceCall): ServiceRefusal | undefined => {
  const template = ServicePricing.misspelledTemplate(service.pricing, method, path)
  return template === undefined
    ? undefined
    : {
        code: "unsupported_route",
        message: `This path resembles the service's endpoint ${template}, which has its own price. Use the exact spelling of that endpoint.`
      }
}

const unavailability = (service: ServiceTable.RegisteredService): ServiceRefusal | undefined => {
  if (!service.enabled) return disabled
  const missing = ServiceTable.missingFields(service)
  return missing.length === 0 ? undefined : incomplete(missing)
}

const noMatch = (closed: ServiceRefusal): ServiceMatch => ({ call: undefined, prefix: 0, closed })

const unknown: ServiceRefusal = {
  code: "missing_service",
  message:
    "No service of that name is registered with this gateway. Check the name, or ask an operator to register the service."
}

const illFormed: ServiceRefusal = {
  code: "invalid_service_payload",
  message: "The path must name a service: /services/<name>, a lower-case DNS label of at most 64 characters."
}

const disabled: ServiceRefusal = {
  code: "disabled_service",
  message: "The service is disabled; an operator can enable it."
}

const incomplete = (missing: ReadonlyArray<string>): ServiceRefusal => ({
  code: "incomplete_service",
  message: `The service cannot be called yet: it lacks ${missing.join(" and ")}. Ask an operator to complete it.`
})

const otherMethods = ({ methods }: ServiceTable.RegisteredService): ServiceRefusal => ({
  code: "unsupported_route",
  message: `This service accepts ${methods.join(" and ")} only.`
})
