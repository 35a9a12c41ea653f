import { Result } from "effect"
import { GatewayError } from "./GatewayError.ts"
import * as Headers from "./Headers.ts"
import type { Family, PolicyRoute, Provider, RouteConfig, RouteId } from "./model/CanonicalRoute.ts"
import { type Accounting, accountingOf } from "./model/Estimate.ts"
import * as Path from "./model/Path.ts"
import * as RouteTable from "./model/RouteTable.ts"
import type { Snapshot } from "./Snapshot.ts"

/** Where a request goes, and under which of the operator's settings. */
export interface Target {
  readonly routeId: RouteId | "compat"
  readonly route: PolicyRoute
  readonly provider: Provider
  /** In whose terms the answer reports its usage: the path's, whatever the request's headers say. */
  readonly family: Family
  readonly config: RouteConfig
  /** Path and query for the upstream, byte for byte. */
  readonly target: string
  readonly accounting: Accounting
  /** The protocol reports a stream's usage only when it is asked to (family A chat). */
  readonly usageOnRequest: boolean
}

/** The direct compatible upstream has no row of settings (reference §1.2). */
const compatConfig: RouteConfig = {
  enabled: true,
  mode: "managed_by_gateway",
  timeoutMs: 60_000,
  maxRequestBodyBytes: 1_048_576,
  maxResponseBodyBytes: 1_048_576
}

/** Finds the target of a request, or says why there is none. */
export const find = (method: string, target: string, snapshot: Snapshot): Result.Result<Target, GatewayError> => {
  const path = Path.canonicalise(target)
  if (Result.isFailure(path)) return Result.fail(unsupported(`The request path ${path.failure}.`))
  const route = RouteTable.match(method, path.success)
  switch (route._tag) {
    case "Canonical": {
      const { family, id, pattern } = route.route
      const config = snapshot.routes.get(id)
      if (config === undefined) return Result.fail(unsupported("Route is not supported by this gateway."))
      return Result.succeed({
        routeId: id,
        route: pattern,
        provider: "upstream",
        family,
        config,
        target,
        accounting: accountingOf(id, method, config.mode),
        usageOnRequest: id === "chat-completions"
      })
    }
    case "Compat":
      return Result.succeed({
        routeId: "compat",
        route: "/providers/compat/*",
        provider: "compat",
        family: familyOf(route.rest, []),
        config: compatConfig,
        target: behindSecondSegment(target),
        accounting: "answer",
        usageOnRequest: route.rest === "/v1/chat/completions"
      })
    case "Service":
      return Result.fail(
        new GatewayError({
          code: "missing_service",
          message: "No service of that name is registered with this gateway."
        })
      )
    case "Control":
      return Result.fail(unsupported("The control API is served by the control listener, not here."))
    case "Unrouted":
      return Result.fail(
        unsupported(
          route.allowed.length === 0
            ? "Route is not supported by this gateway."
            : `This path is served for ${route.allowed.join(" and ")} only.`
        )
      )
  }
}

const unsupported = (message: string) => new GatewayError({ code: "unsupported_route", message })

/** The canonical form keeps segments one to one, so the raw target is cut at the same place. */
const behindSecondSegment = (target: string): string => {
  const second = target.indexOf("/", 1) + 1
  const length = target.slice(second).search(/[/?]/)
  const rest = length === -1 ? "" : target.slice(second + length)
  return rest.startsWith("/") ? rest : `/${rest}`
}

/** Family B's client names its protocol version on every call; on a path that both families share, that tells them apart. */
export const familyOf = (target: string, headers: Headers.RawHeaders): Family =>
  target.startsWith("/v1/messages") || Headers.get(headers, "anthropic-version") !== undefined ? "b" : "a"
