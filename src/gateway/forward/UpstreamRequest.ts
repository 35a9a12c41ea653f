import * as Headers from "../../http/Headers.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import type { RouteConfig } from "../../policy/routes/CanonicalRoute.ts"
import * as FairShare from "../../services/FairShare.ts"
import type { Exchange } from "../../services/Upstream.ts"
import * as Request from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { Destination } from "./Destination.ts"

interface UpstreamRequestOptions {
  readonly request: Request.Request
  readonly target: RoutedRequest
  /** The settings of the route at this upstream. A fallback has settings of its own. */
  readonly config: RouteConfig
  readonly destination: Destination
  readonly key: KeyRecord | undefined
  readonly body: Exchange["body"]
  readonly traceparent: string | undefined
  /** True if the gateway reads the response. The upstream must then not compress it. */
  readonly readsResponse: boolean
}

export const toExchange = ({
  body,
  config,
  destination,
  key,
  readsResponse,
  request,
  target,
  traceparent
}: UpstreamRequestOptions): Exchange => ({
  origin: destination.base.origin,
  caller: key === undefined ? FairShare.callerOfAddress(request.wire.address) : key.id,
  method: request.wire.method,
  target: destination.target,
  headers: Headers.forUpstream(request.wire.headers, {
    credential: destination.credential,
    style: destination.style,
    credentialHeaders: destination.credentialHeaders,
    keyHeader: request.keyHeader,
    gatewayHeaders: destination.isVendor
      ? Request.vendorHeaders(request, traceparent)
      : Request.gatewayHeaders(request, key, traceparent, target.service?.service.name),
    plainResponse: readsResponse
  }),
  body,
  headersWithinMs: config.timeoutMs,
  idleWithinMs: config.timeoutMs
})
