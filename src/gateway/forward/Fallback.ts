import { Option, Result } from "effect"
import { allModels } from "../../policy/facts/Facts.ts"
import type { KeyPolicy } from "../../policy/KeyPolicy.ts"
import * as Policy from "../../policy/Policy.ts"
import * as Routing from "../../policy/Routing.ts"
import type { RouteConfig } from "../../policy/routes/CanonicalRoute.ts"
import type { ControlState } from "../snapshot/ControlState.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { Destination, Destinations } from "./Destination.ts"

export interface UpstreamCandidate {
  readonly destination: Destination
  readonly config: RouteConfig
  readonly policy: KeyPolicy
}

/** Returns the fallback for a request to the direct compatible upstream, if route and policy allow it. */
export const find = (
  control: ControlState["Service"],
  destinations: Destinations["Service"],
  target: Routing.Target,
  key: KeyRecord,
  question: Policy.PolicyRequest,
  bodyBytes: number
): Option.Option<UpstreamCandidate> => {
  if (target.provider !== "compat") return Option.none()
  return Option.gen(function* () {
    const proxyTarget = yield* Result.getSuccess(Routing.find("POST", target.target, control.snapshot()))
    if (proxyTarget.routeId === "wildcard") return yield* Option.none()
    const { config, route } = proxyTarget
    const { policy } = control.policyOf(key, route, allModels(question.facts))
    const isAllowed =
      proxyTarget.provider === "upstream" &&
      config.enabled &&
      bodyBytes <= config.maxRequestBodyBytes &&
      Policy.decide(policy, { ...question, route, provider: "upstream" })._tag === "Allowed"
    if (!isAllowed) return yield* Option.none()
    return {
      destination: yield* Result.getSuccess(destinations.find(proxyTarget, proxyTarget.family, key)),
      config,
      policy
    }
  })
}
