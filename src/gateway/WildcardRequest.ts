import { Effect, Result } from "effect"
import type { WildcardTarget } from "../policy/Routing.ts"
import * as LocationHeaders from "./forward/LocationHeaders.ts"
import type * as RequestLifecycle from "./forward/RequestLifecycle.ts"
import * as StreamedRequest from "./forward/StreamedRequest.ts"
import { queueFull } from "./GatewayError.ts"
import * as KeyedRequest from "./KeyedRequest.ts"
import { clientKindOf, KeyedWildcardRequest, type WildcardServices } from "./KeyedWildcardRequest.ts"
import * as MeterCache from "./limits/MeterCache.ts"
import type * as Request from "./request/Request.ts"
import type { KeyRecord } from "./snapshot/KeyRecord.ts"
import type * as Tracing from "./telemetry/Tracing.ts"

/**
 * Forwards requests on paths that match no other route. The gateway enforces the parts of the key's policy that need no
 * body: `deny`, route, provider, hours, sizes, and requests per minute and day. If the policy also depends on the body,
 * the request is refused unless the passthrough settings say `skip`. Tokens and cost are not counted.
 */
export interface WildcardRequests {
  /** Sends the upstream credential of the key. The usage record contains the status, but no tokens. */
  readonly runWithKey: (
    request: Request.Request,
    target: WildcardTarget,
    key: KeyRecord,
    span: Tracing.Span,
    lifecycle: RequestLifecycle.RequestLifecycle
  ) => RequestLifecycle.OnDisconnect
  /** Serves browsers without a gateway key. Sends the provider's own credential upstream and writes no usage record. */
  readonly runWithoutKey: (
    request: Request.Request,
    target: WildcardTarget,
    span: Tracing.Span,
    lifecycle: RequestLifecycle.RequestLifecycle
  ) => RequestLifecycle.OnDisconnect
}

export const make = Effect.gen(function* () {
  const services: WildcardServices = {
    ...(yield* KeyedRequest.makeServices),
    requestCounters: MeterCache.requestCountersOnly()
  }
  const { destinations, now, upstream, usageLog } = services

  const requests: WildcardRequests = {
    runWithKey: (request, target, key, span, lifecycle) => {
      if (usageLog.hasRoom()) return new KeyedWildcardRequest(services, request, target, key, span, lifecycle).run()
      lifecycle.refuse(queueFull)
      return () => {}
    },
    runWithoutKey: (request, target, span, lifecycle) => {
      const destination = destinations.find(target, request.family, undefined)
      if (Result.isFailure(destination)) {
        lifecycle.refuse(destination.failure)
        return () => {}
      }
      const options: StreamedRequest.StreamedRequestOptions = {
        request,
        target,
        key: undefined,
        destination: destination.success,
        rewriteHeaders: LocationHeaders.forBrowser(request.wire.headers, destination.success.base),
        clientKind: clientKindOf(target)
      }
      return StreamedRequest.run(upstream, options, now, span, lifecycle)
    }
  }
  return requests
})
