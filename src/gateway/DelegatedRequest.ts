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
 * Forwards a request that carries the client's own upstream credential. Only the upstream checks this credential. No
 * gateway key, policy or limit applies, and no usage record is written.
 */
export const run = (
  upstream: Upstream["Service"],
  request: Request.Request,
  target: Target,
  destination: Destination,
  now: () => number,
  span: Tracing.Span,
  lifecycle: RequestLifecycle.RequestLifecycle
): RequestLifecycle.OnDisconnect => {
  if (target.config.enabled) {
    return StreamedRequest.run(upstream, { request, target, destination, key: undefined }, now, span, lifecycle)
  }
  lifecycle.refuse(new GatewayError(disabledRoute))
  return () => {}
}
