import * as Headers from "../../http/Headers.ts"
import type { Routed } from "../../policy/Routing.ts"
import type { RouteConfig } from "../../policy/routes/CanonicalRoute.ts"
import * as Share from "../../services/Share.ts"
import type { Exchange } from "../../services/Upstream.ts"
import * as Request from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { Destination } from "./Destination.ts"

export interface Outbound {
  readonly request: Request.Request
  readonly target: Routed
  /** The settings of the route that it goes by: a fallback has its own. */
  readonly config: RouteConfig
  readonly destination: Destination
  readonly key: KeyRecord | undefined
  readonly body: Exchange["body"]
  /** The parent of the upstream's spans. */
  readonly traceparent: string | undefined
  /** The gateway reads the answer, for its tokens or its guardrails. */
  readonly read: boolean
}

/** What goes to the upstream: the client's request in all but its credentials and what only the gateway may say. */
export const exchange = ({
  body,
  config,
  destination,
  key,
  read,
  request,
  target,
  traceparent
}: Outbound): Exchange => ({
  origin: destination.base.origin,
  caller: key === undefined ? Share.callerAt(request.wire.address) : key.id,
  method: request.wire.method,
  target: destination.target,
  headers: Headers.forUpstream(request.wire.headers, {
    credential: destination.credential,
    style: destination.style,
    ownHeaders: destination.ownHeaders,
    keyHeader: request.keyHeader,
    own: destination.isVendor
      ? Request.vendorHeaders(request, traceparent)
      : Request.ownHeaders(request, key, traceparent, target.service?.service.name),
    plainAnswer: read
  }),
  body,
  headersWithinMs: config.timeoutMs,
  idleWithinMs: config.timeoutMs
})
