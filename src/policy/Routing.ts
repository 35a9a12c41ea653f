import { Result } from "effect"
import { type Accounting, accountingOf } from "./Estimate.ts"
import type { BodyRoute } from "./routes/CanonicalRoute.ts"
import {
  type CanonicalRoute,
  compatConfig,
  compatLimits,
  type Family,
  modelsRoute,
  type PolicyRoute,
  type Provider,
  type RouteConfig,
  type RouteId
} from "./routes/CanonicalRoute.ts"
import * as CompatPaths from "./routes/CompatPaths.ts"
import * as Exposure from "./routes/Exposure.ts"
import type { Passthrough } from "./routes/Passthrough.ts"
import * as Path from "./routes/Path.ts"
import * as RouteTable from "./routes/RouteTable.ts"
import { noObjectUse, type ObjectUse, useOf, useOfRoute } from "./routes/UpstreamObjects.ts"
import * as UpstreamPaths from "./routes/UpstreamPaths.ts"
import { byName, byPattern, type ServiceCall, type ServiceMatch, type ServiceRefusal } from "./ServiceCall.ts"
import type { ServiceTable } from "./ServiceTable.ts"

export interface RoutedRequest {
  readonly route: PolicyRoute
  readonly provider: Provider
  readonly config: RouteConfig
  /** The path and query to send upstream, byte for byte. */
  readonly target: string
  readonly service?: ServiceCall
  readonly objects: ObjectUse
}

export interface Target extends RoutedRequest {
  /** Defines the format of the body. A compatible upstream's path has the format of the same gateway path. */
  readonly routeId: BodyRoute
  /** The protocol of the usage report in the response. It depends on the path and not on the client's headers. */
  readonly family: Family
  readonly accounting: Accounting
  /** True if streams report usage only on request, as OpenAI chat completions do. */
  readonly isUsageOptIn: boolean
  readonly model?: string
  /** The service name in the path, which need not belong to a registered service. */
  readonly serviceName?: string
  /** The error if the service cannot be called. Only authenticated clients receive it. */
  readonly closed?: ServiceRefusal
}

export interface WildcardTarget extends RoutedRequest {
  readonly routeId: "wildcard"
  readonly access: Exclude<Exposure.WildcardAccess, "closed">
  readonly settings: Passthrough
}

const compatUse = (method: string, segments: ReadonlyArray<string>, like: RouteId | undefined): ObjectUse =>
  like === undefined ? useOf(method, segments) : useOfRoute(like, method, segments)

interface RoutingSettings {
  readonly routes: ReadonlyMap<RouteId, RouteConfig>
  readonly services: ServiceTable
  readonly passthrough: Passthrough
}

/** The error if no route matches. Clients receive it before authentication. */
interface RoutingFailure {
  readonly code: "unsupported_route"
  readonly message: string
}

export interface RoutingPaths {
  readonly support: UpstreamPaths.UiSupportPaths
  readonly compat: ReadonlyArray<string>
  readonly compatConfig: RouteConfig
}

export const defaultPaths: RoutingPaths = {
  support: UpstreamPaths.defaultUiSupport,
  compat: CompatPaths.defaultPaths,
  compatConfig: compatConfig(compatLimits, "project")
}

const canonicalTarget = (
  { family, id, pattern }: CanonicalRoute,
  method: string,
  target: string,
  segments: ReadonlyArray<string>,
  settings: RoutingSettings
): Result.Result<Target, RoutingFailure> => {
  const config = settings.routes.get(id)
  if (config === undefined) return Result.fail(unrouted(method, target))
  return Result.succeed({
    routeId: id,
    route: pattern,
    provider: "upstream",
    family,
    config,
    target,
    objects: useOfRoute(id, method, segments),
    accounting: accountingOf(id, method, config.mode),
    isUsageOptIn: id === "chat-completions"
  })
}

export const find = (
  method: string,
  target: string,
  settings: RoutingSettings,
  paths: RoutingPaths = defaultPaths
): Result.Result<Target | WildcardTarget, RoutingFailure> => {
  const exact = RouteTable.matchExact(method, target)
  if (exact !== undefined) return canonicalTarget(exact.route, method, target, exact.segments, settings)
  const path = Path.canonicalise(target)
  if (Result.isFailure(path)) return Result.fail(unsupported(`The request path ${path.failure}.`))
  const route = RouteTable.match(method, path.success)
  switch (route._tag) {
    case "Canonical":
      return canonicalTarget(route.route, method, target, path.success.segments, settings)
    case "Compat":
      if (!CompatPaths.isOpen(paths.compat, route.rest)) return Result.fail(closedAtCompat)
      return Result.succeed({
        routeId: route.like?.id ?? "compat",
        route: "/providers/compat/*",
        provider: "compat",
        family: familyOfPath(route.rest),
        config: paths.compatConfig,
        target: withoutLeadingSegments(target, 2),
        objects: compatUse(method, path.success.segments.slice(2), route.like?.id),
        accounting: route.like === undefined ? "answer" : accountingOf(route.like.id, method, "managed_by_gateway"),
        isUsageOptIn: route.like?.id === "chat-completions"
      })
    case "Service":
      return Result.succeed(
        serviceTarget(
          byPattern(settings.services, method, path.success) ??
            byName(settings.services, method, path.success, route.name),
          route.name,
          target,
          path.success.path
        )
      )
    case "Control":
      return Result.fail(
        unsupported(
          "Only the control listener serves the control API. Send the request to the control listener's port."
        )
      )
    case "Unrouted": {
      const registered = byPattern(settings.services, method, path.success)
      if (registered !== undefined) return Result.succeed(serviceTarget(registered, "", target, path.success.path))
      const access = Exposure.accessOf(settings.passthrough, paths.support, method, path.success)
      if (access !== "closed")
        return Result.succeed(wildcard(target, access, settings.passthrough, useOf(method, path.success.segments)))
      const alias = RouteTable.aliasOf(method, path.success.segments)
      const model = RouteTable.modelOf(method, path.success)
      if (model !== undefined) {
        const found = canonicalTarget(modelsRoute, method, target, path.success.segments, settings)
        return Result.map(found, (list) => ({ ...list, model }))
      }
      if (alias !== undefined) {
        return Result.fail(
          unsupported(`The gateway serves this path as ${method} ${alias.pattern}. Send the request there.`)
        )
      }
      return Result.fail(
        route.allowed.length === 0
          ? unrouted(method, path.success.path)
          : unsupported(`This path accepts ${route.allowed.join(" and ")} only.`)
      )
    }
  }
}

const wildcard = (
  target: string,
  access: WildcardTarget["access"],
  settings: Passthrough,
  objects: ObjectUse
): WildcardTarget => ({
  routeId: "wildcard",
  route: "/upstream/*",
  provider: "upstream",
  config: {
    enabled: true,
    mode: "direct_upstream_passthrough",
    timeoutMs: settings.timeout_ms,
    maxRequestBodyBytes: settings.max_request_body_bytes,
    maxResponseBodyBytes: settings.max_response_body_bytes,
    limitsStreams: settings.limits_streams,
    limitsSetBy: "the wildcard",
    ownership: settings.ownership
  },
  target,
  access,
  settings,
  objects
})

const serviceTarget = ({ call, closed, prefix }: ServiceMatch, name: string, target: string, path: string): Target => ({
  routeId: "service",
  route: RouteTable.serviceRoute(path),
  provider: "internal-service",
  family: "a",
  config: call?.service.config ?? unregisteredConfig,
  objects: noObjectUse,
  target: prefix === 0 ? target : withoutLeadingSegments(target, prefix),
  accounting: "answer",
  isUsageOptIn: false,
  serviceName: call?.service.name ?? name,
  ...(call !== undefined && { service: call }),
  ...(closed !== undefined && { closed })
})

/** Settings for a service that is not registered. Such a request is refused before they are used. */
const unregisteredConfig: RouteConfig = {
  enabled: true,
  mode: "managed_by_gateway",
  timeoutMs: 60_000,
  maxRequestBodyBytes: 2_097_152,
  maxResponseBodyBytes: Number.POSITIVE_INFINITY,
  limitsStreams: false,
  limitsSetBy: "the service",
  ownership: "shared"
}

/** Removes leading segments from the raw target, which has as many segments as its canonical form. */
export const withoutLeadingSegments = (target: string, segments: number): string => {
  let end = 0
  for (let cut = 0; cut < segments; cut++) {
    const length = target.slice(end + 1).search(/[/?]/)
    if (length === -1) return "/"
    end += 1 + length
  }
  const rest = target.slice(end)
  return rest.startsWith("/") ? rest : `/${rest}`
}

const unsupported = (message: string): RoutingFailure => ({ code: "unsupported_route", message })

const closedAtCompat = unsupported(
  "This path of the direct compatible upstream is not open. An operator can open paths with DIRECT_COMPAT_ALLOWED_PATHS. The paths of its UI and administration always stay closed."
)

const maxShownCharacters = 128

const unrouted = (method: string, path: string) =>
  unsupported(
    `Route is not supported by this gateway. There is no ${method} ${path.slice(0, maxShownCharacters)} here. Common routes are POST /v1/chat/completions, /v1/responses, /v1/embeddings and /v1/messages, and GET /v1/models.`
  )

/** Returns the protocol of a path. On paths that both protocols share, the client's headers decide instead. */
export const familyOfPath = (path: string): Family => (path.startsWith("/v1/messages") ? "b" : "a")

export const providerOf = (route: PolicyRoute): Provider =>
  route === "/providers/compat/*"
    ? "compat"
    : route.startsWith("/v1/") || route === "/upstream/*"
      ? "upstream"
      : "internal-service"
