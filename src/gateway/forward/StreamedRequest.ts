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

/** How it came out, before the client has the end of its answer. */
export interface ExchangeOutcome {
  readonly status: number
  readonly error: GatewayError.GatewayError | undefined
  readonly upstreamMs?: number
  /** The client has seen the upstream's status and headers. */
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
  /** In the place of the client's stream: its body, which was read. */
  readonly bufferedBody?: Buffer | undefined
  /** The upstream has begun to answer: it has the body. */
  readonly onResponse?: () => void
  /** What a policy leaves of the route's limits, and what its counters show. Nothing, where no policy is asked. */
  readonly appliedPolicy?: AppliedPolicy
  /** What the client is shown of the answer's headers; all of them, where this is left out. */
  readonly rewriteHeaders?: Forward.ForwardOptions["rewriteHeaders"]
  readonly clientKind?: ClientKind
  /** Is shown the answer while it passes. */
  readonly observer?: Forward.ResponseObserver | undefined
  /** Reads the answer whole before the client sees any of it. */
  readonly inspector?: BufferedResponse.ResponseInspector | undefined
  /** Puts on record how it came out, and tells `then` when that is safe. Without one nothing is kept. */
  readonly settle?: (came: ExchangeOutcome, then: () => void) => void
}

/**
 * A request whose content decides nothing any more: its body streams through, unless it was read, and so does the
 * answer, each up to the route's limit.
 */
export const run = (
  upstream: Upstream["Service"],
  streamed: StreamedRequestOptions,
  now: () => number,
  span: Tracing.Span,
  outcome: RequestLifecycle.RequestLifecycle
): RequestLifecycle.OnDisconnect => {
  const {
    appliedPolicy = noPolicy,
    destination,
    rewriteHeaders,
    inspector,
    key,
    clientKind,
    request,
    target,
    observer
  } = streamed
  const settle = streamed.settle ?? ((_, then) => then())
  const { wire } = request
  const { config } = target
  const { policy, readings } = appliedPolicy
  const limit = ofRequests(config, policy.max_request_body_bytes)
  const body =
    streamed.bufferedBody === undefined && sendsBody(wire) ? streamBody(wire, limit.bytes, config.timeoutMs) : undefined
  const sentAt = now()
  const exchange = span.startExchange("gateway.upstream", destination.base.origin)
  const passage: Forward.ForwardOptions = {
    exchange: UpstreamRequest.toExchange({
      request,
      target,
      config,
      destination,
      key,
      body: streamed.bufferedBody ?? body?.bytes ?? null,
      traceparent: exchange.traceparent,
      readsResponse: observer !== undefined || inspector !== undefined
    }),
    credential: destination.credential,
    usageReading: { _tag: "Blind" },
    limits: ofResponses(config, policy.max_response_body_bytes),
    // nothing hangs on the record of it
    hasTerminalEvent: false,
    renderErrorEvent: (error) => GatewayError.errorEvent(error, request.family, request.requestId),
    addedHeaders: RequestLifecycle.responseHeaders(request, readings, now()),
    ...(rewriteHeaders === undefined ? locationRewriting(wire, target, destination) : { rewriteHeaders }),
    clientKind,
    onResponse: streamed.onResponse ?? (() => {}),
    mayFallBack: false,
    observer,
    requestBodyRefusal: () => {
      const failure = body?.failure()
      return failure === undefined ? undefined : RequestBody.bodyError(failure, limit, config.timeoutMs)
    },
    now
  }
  const conclude = ({ finish, result }: Forward.PendingResponse) => {
    exchange.end(result.status ?? result.withheldStatus)
    const came: ExchangeOutcome = {
      status: result.status ?? result.error?.status ?? RequestLifecycle.clientClosedStatus,
      error: result.error,
      upstreamMs: result.endedAt - sentAt,
      headSent: result.headSent
    }
    settle(came, () => {
      if (result.error !== undefined && !result.headSent)
        RequestLifecycle.sendRefusal(request, result.error, readings, now())
      else finish()
      outcome.end({
        ...came,
        streamed: false,
        aborted: result.headSent && !result.isComplete,
        bill: Billing.unbilled
      })
    })
  }
  return inspector === undefined
    ? Forward.send(upstream, wire, passage, conclude, outcome.fail)
    : BufferedResponse.send(upstream, wire, passage, inspector, conclude, outcome.fail)
}

/** An upstream below a path of its host writes that path in its links. */
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

/** A body is announced by its framing (RFC 9112 §6); a POST without any is sent on as one with an empty body. */
const sendsBody = (wire: Wire): boolean => wire.method === "POST" || hasBody(wire)

export const hasBody = ({ headers }: Wire): boolean =>
  Headers.get(headers, "transfer-encoding") !== undefined || Number(Headers.get(headers, "content-length") ?? 0) > 0

/** The body as it comes, and afterwards why it came to no good end. */
const streamBody = (wire: Wire, maxBytes: number, idleMs: number) => {
  let failed: BodyFailure | undefined
  return {
    failure: () => failed,
    bytes: wire.streamBody({
      maxBytes,
      idleMs,
      onFailure: (failure) => {
        failed = failure
      }
    })
  }
}
