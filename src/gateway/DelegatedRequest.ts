import { disabledRoute } from "../policy/Refusals.ts"
import type { Target } from "../policy/Routing.ts"
import type { Upstream } from "../services/Upstream.ts"
import type { Destination } from "./forward/Destination.ts"
import type * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import * as StreamedRequest from "./forward/StreamedRequest.ts"
import { GatewayError } from "./GatewayError.ts"
import type * as Request from "./request/Request.ts"
import type * as Tracing from "./telemetry/Tracing.ts"

/**
 * Direct mode with a credential that is the client's own: the upstream decides about it. No key, policy, limits or
 * record; the body is not looked into and streams through, up to the route's limit.
 */
export const run = (
  upstream: Upstream["Service"],
  request: Request.Request,
  target: Target,
  destination: Destination,
  now: () => number,
  span: Tracing.Span,
  outcome: RequestLifecycle.RequestLifecycle
): RequestLifecycle.OnDisconnect => {
  if (target.config.enabled) {
    return StreamedRequest.run(upstream, { request, target, destination, key: undefined }, now, span, outcome)
  }
  outcome.refuse(new GatewayError(disabledRoute))
  return () => {}
}
