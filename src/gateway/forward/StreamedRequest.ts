import * as Headers from "../../http/Headers.ts"
import type { ClientKind } from "../../policy/facts/ResponseHeaders.ts"
import type { KeyPolicy } from "../../policy/KeyPolicy.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import { ofRequests, ofResponses } from "../../policy/routes/BodyLimit.ts"
import type { Upstream } from "../../services/Upstream.ts"
import * as GatewayError from "../GatewayError.ts"
import type { MeterReading } from "../limits/Meters.ts"
import type * as Request from "../request/Request.ts"
import * as RequestBody from "../request/RequestBody.ts"
import type { BodyFailure, Wire } from "../request/Wire.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type * as Tracing from "../telemetry/Tracing.ts"
import * as Billing from "../usage/Billing.ts"
import * as BufferedResponse from "./BufferedResponse.ts"
import type { Destination } from "./Destination.ts"
import * as Forward from "./Forward.ts"
import * as LocationHeaders from "./LocationHeaders.ts"
import * as RequestLifecycle from "./RequestLifecycle.ts"
import * as UpstreamRequest from "./UpstreamRequest.ts"

/** The outcome before the client sees the end of the response. */
export interface ExchangeOutcome {
  readonly status: number
  readonly error: GatewayError.GatewayError | undefined
  readonly upstreamMs?: number
  readonly headSent?: boolean
}

export interface AppliedPolicy {
  readonly policy: Pick<KeyPolicy, "max_request_body_bytes" | "max_response_body_bytes">
  readonly readings: ReadonlyArray<MeterReading>
}

export interface StreamedRequestOptions {
  readonly request: Request.Request
  readonly target: RoutedRequest
  readonly destination: Destination
  readonly key: KeyRecord | undefined
  /** The request body, if it was read in advance. Otherwise the client's body streams through. */
  readonly bufferedBody?: Buffer | undefined
  readonly onResponse?: () => void
  /** Default: no policy, so only the route's limits apply. */
  readonly appliedPolicy?: AppliedPolicy
  readonly rewriteHeaders?: Forward.ForwardOptions["rewriteHeaders"]
  readonly clientKind?: ClientKind
  readonly observer?: Forward.ResponseObserver | undefined
  readonly inspector?: BufferedResponse.ResponseInspector | undefined
  /** Records the outcome and calls `then` when the response may end. Default: no record. */
  readonly settle?: (outcome: ExchangeOutcome, then: () => void) => void
}

/**
 * Forwards a request that needs no further decision. The body streams through unless it was read in advance, and the
 * response streams through, both within their limits.
 */
export const run = (
  upstream: Upstream["Service"],
  options: StreamedRequestOptions,
  now: () => number,
  span: Tracing.Span,
  lifecycle: RequestLifecycle.RequestLifecycle
): RequestLifecycle.OnDisconnect => {
  const { appliedPolicy = noPolicy, destination, inspector, request } = options
  const settle = options.settle ?? ((_, then) => then())
  const sentAt = now()
  const exchange = span.startExchange("gateway.upstream", destination.base.origin)
  const forwardOptions = forwardOptionsOf(options, appliedPolicy, exchange.traceparent, now)
  const conclude = ({ finish, result }: Forward.PendingResponse) => {
    exchange.end(result.status ?? result.withheldStatus)
    const outcome: ExchangeOutcome = {
      status: result.status ?? result.error?.status ?? RequestLifecycle.clientClosedStatus,
      error: result.error,
      upstreamMs: result.endedAt - sentAt,
      headSent: result.headSent
    }
    settle(outcome, () => {
      if (result.error !== undefined && !result.headSent)
        RequestLifecycle.sendRefusal(request, result.error, appliedPolicy.readings, now())
      else finish()
      lifecycle.end({
        ...outcome,
        streamed: false,
        aborted: result.headSent && !result.isComplete,
        bill: Billing.unbilled
      })
    })
  }
  return inspector === undefined
    ? Forward.send(upstream, request.wire, forwardOptions, conclude, lifecycle.fail)
    : BufferedResponse.send(upstream, request.wire, forwardOptions, inspector, conclude, lifecycle.fail)
}

const forwardOptionsOf = (
  options: StreamedRequestOptions,
  { policy, readings }: AppliedPolicy,
  traceparent: string | undefined,
  now: () => number
): Forward.ForwardOptions => {
  const { bufferedBody, clientKind, destination, inspector, key, observer, request, rewriteHeaders, target } = options
  const { wire } = request
  const { config } = target
  const limit = ofRequests(config, policy.max_request_body_bytes)
  const body =
    bufferedBody === undefined && sendsBody(wire) ? streamBody(wire, limit.bytes, config.timeoutMs) : undefined
  return {
    exchange: UpstreamRequest.toExchange({
      request,
      target,
      config,
      destination,
      key,
      body: bufferedBody ?? body?.bytes ?? null,
      traceparent,
      readsResponse: observer !== undefined || inspector !== undefined
    }),
    credential: destination.credential,
    usageReading: { _tag: "Blind" },
    limits: ofResponses(config, policy.max_response_body_bytes),
    // No usage depends on where the stream ends.
    hasTerminalEvent: false,
    renderErrorEvent: (error) => GatewayError.errorEvent(error, request.family, request.requestId),
    addedHeaders: RequestLifecycle.responseHeaders(request, readings, now()),
    ...(rewriteHeaders === undefined ? locationRewriting(wire, target, destination) : { rewriteHeaders }),
    clientKind,
    onResponse: options.onResponse ?? (() => {}),
    mayFallBack: false,
    observer,
    requestBodyRefusal: () => {
      const failure = body?.failure()
      return failure === undefined ? undefined : RequestBody.bodyError(failure, limit, config.timeoutMs)
    },
    now
  }
}

/** An upstream with a path prefix includes the prefix in its links. */
const locationRewriting = (
  wire: Wire,
  { target }: RoutedRequest,
  { base }: Destination
): Pick<Forward.ForwardOptions, "rewriteHeaders"> =>
  base.prefix === "" ? {} : { rewriteHeaders: LocationHeaders.forClient(wire.target, target, base) }

const noPolicy: AppliedPolicy = {
  policy: { max_request_body_bytes: null, max_response_body_bytes: null },
  readings: []
}

/** Framing headers announce a body (RFC 9112 §6). A POST without them is forwarded with an empty body. */
const sendsBody = (wire: Wire): boolean => wire.method === "POST" || hasBody(wire)

export const hasBody = ({ headers }: Wire): boolean =>
  Headers.get(headers, "transfer-encoding") !== undefined || Number(Headers.get(headers, "content-length") ?? 0) > 0

const streamBody = (wire: Wire, maxBytes: number, idleMs: number) => {
  let failure: BodyFailure | undefined
  return {
    failure: () => failure,
    bytes: wire.streamBody({
      maxBytes,
      idleMs,
      onFailure: (reason) => {
        failure = reason
      }
    })
  }
}
