import { Result } from "effect"
import { type Accounting, accountingOf } from "./Estimate.ts"
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

/** Where a request goes, and under which of the operator's settings. */
export interface RoutedRequest {
  readonly route: PolicyRoute
  readonly provider: Provider
  readonly config: RouteConfig
  /** Path and query for the upstream, byte for byte. */
  readonly target: string
  /** The registered service that answers, where one does. */
  readonly service?: ServiceCall
  /** What it does with objects that live at the upstream. */
  readonly objects: ObjectUse
}

/** A route whose bodies and answers are read. */
export interface Target extends RoutedRequest {
  /** What its body is read as: at the compatible upstream as on the gateway's own route of the same path. */
  readonly routeId: RouteId | "compat" | "service"
  /** In whose terms the answer reports its usage: the path's, whatever the request's headers say. */
  readonly family: Family
  readonly accounting: Accounting
  /** The protocol reports a stream's usage only when it is asked to (family A chat). */
  readonly isUsageOptIn: boolean
  /** The model that is asked about. */
  readonly model?: string
  /** The service that is asked, whether or not one of that name is registered. */
  readonly serviceName?: string
  /** Why nothing answers: told to whoever is known, and to nobody else. */
  readonly closed?: ServiceRefusal
}

/** A path that the wildcard lets through, to whom `access` says. */
export interface WildcardTarget extends RoutedRequest {
  readonly routeId: "wildcard"
  readonly access: Exclude<Exposure.WildcardAccess, "closed">
  readonly settings: Passthrough
}

const compatUse = (method: string, segments: ReadonlyArray<string>, like: RouteId | undefined): ObjectUse =>
  like === undefined ? useOf(method, segments) : useOfRoute(like, method, segments)

/** What operators decide about the places where requests go. */
export interface RoutingSettings {
  readonly routes: ReadonlyMap<RouteId, RouteConfig>
  readonly services: ServiceTable
  readonly passthrough: Passthrough
}

/** Why no route takes a request, which is told before anybody is authenticated. */
export interface RoutingFailure {
  readonly code: "unsupported_route"
  readonly message: string
}

/** The part of the upstreams' paths that a deployment decides by its environment. */
export interface RoutingPaths {
  /** What the upstream's UI loads, by the names that it has at this deployment. */
  readonly support: UpstreamPaths.UiSupportPaths
  /** What of the direct compatible upstream is open. */
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

/** Finds the target of a request, or says why there is none. */
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
      return Result.fail(unsupported("The control API is served by the control listener, not here."))
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
        return Result.fail(unsupported(`The gateway serves this as ${method} ${alias.pattern}; send it there.`))
      }
      return Result.fail(
        route.allowed.length === 0
          ? unrouted(method, path.success.path)
          : unsupported(`This path is served for ${route.allowed.join(" and ")} only.`)
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

/** The target of a service's path: open, or closed with the reason. `name`: the one that the path asks for. */
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

/** The settings of a service that there is not: nothing comes as far as using them. */
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

/** The canonical form keeps segments one to one, so the raw target is cut at the same place. */
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
  "This path of the direct compatible upstream is not open. An operator can open paths by DIRECT_COMPAT_ALLOWED_PATHS; the upstream's UI and administration stay closed."
)

/** A path is as long as a head may be. */
const maxShownCharacters = 128

const unrouted = (method: string, path: string) =>
  unsupported(
    `Route is not supported by this gateway. There is no ${method} ${path.slice(0, maxShownCharacters)} here; POST /v1/chat/completions, /v1/responses, /v1/embeddings and /v1/messages, and GET /v1/models are the usual ones.`
  )

/** The family of a path; on one that both families share, the client's headers tell them apart. */
export const familyOfPath = (path: string): Family => (path.startsWith("/v1/messages") ? "b" : "a")

/** The provider of a route, as policies and usage records name it. */
export const providerOf = (route: PolicyRoute): Provider =>
  route === "/providers/compat/*"
    ? "compat"
    : route.startsWith("/v1/") || route === "/upstream/*"
      ? "upstream"
      : "internal-service"
