import type { RouteConfig } from "../../policy/routes/CanonicalRoute.ts"
import { serviceRoute } from "../../policy/routes/RouteTable.ts"
import { unused } from "../../policy/routes/UpstreamObjects.ts"
import type { Found } from "../../policy/ServiceCall.ts"
import { GatewayError } from "../GatewayError.ts"
import type { Target } from "./Target.ts"

/** The target of a service's path: open, or closed with the reason. */
export const of = ({ call, closed, prefix }: Found, target: string, path: string): Target => ({
  routeId: "service",
  route: serviceRoute(path),
  provider: "internal-service",
  family: "a",
  config: call?.service.config ?? unset,
  objects: unused,
  target: prefix === 0 ? target : behind(target, prefix),
  accounting: "answer",
  usageOnRequest: false,
  ...(call !== undefined && { service: call }),
  ...(closed !== undefined && { closed: new GatewayError(closed) })
})

/** The settings of a service that there is not: nothing comes as far as using them. */
const unset: RouteConfig = {
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
