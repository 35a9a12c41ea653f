import { Option, Result } from "effect"
import { allModels } from "../../policy/facts/Facts.ts"
import type { KeyPolicy } from "../../policy/KeyPolicy.ts"
import * as Policy from "../../policy/Policy.ts"
import * as Routing from "../../policy/Routing.ts"
import type { RouteConfig } from "../../policy/routes/CanonicalRoute.ts"
import type { ControlState } from "../snapshot/ControlState.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { Destination, Destinations } from "./Destination.ts"

/** One upstream to try, under the settings of its route. */
export interface UpstreamCandidate {
  readonly destination: Destination
  readonly config: RouteConfig
  readonly policy: KeyPolicy
}

/**
 * Reference §1.6: what the direct compatible upstream fails, the model proxy may try once. There the path is a route of
 * the gateway, and goes only where the key might have gone by itself. `bytes`: of the body that would be sent.
 */
export const find = (
  control: ControlState["Service"],
  destinations: Destinations["Service"],
  target: Routing.Target,
  key: KeyRecord,
  question: Policy.PolicyRequest,
  bytes: number
): Option.Option<UpstreamCandidate> => {
  if (target.provider !== "compat") return Option.none()
  return Option.gen(function* () {
    const direct = yield* Result.getSuccess(Routing.find("POST", target.target, control.snapshot()))
    if (direct.routeId === "wildcard") return yield* Option.none()
    const { config, route } = direct
    const { policy } = control.policyOf(key, route, allModels(question.facts))
    const open =
      direct.provider === "upstream" &&
      config.enabled &&
      bytes <= config.maxRequestBodyBytes &&
      Policy.decide(policy, { ...question, route, provider: "upstream" })._tag === "Allowed"
    if (!open) return yield* Option.none()
    return { destination: yield* Result.getSuccess(destinations.find(direct, direct.family, key)), config, policy }
  })
}
