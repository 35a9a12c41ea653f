import * as Headers from "../../http/Headers.ts"
import type { ClientKind } from "../../policy/facts/ResponseHeaders.ts"
import type { KeyPolicy } from "../../policy/KeyPolicy.ts"
import type { RoutedRequest } from "../../policy/Routing.ts"
import { ofRequests, ofResponses } from "../../policy/routes/BodyLimit.ts"
import type { Upstream } from "../../services/Upstream.ts"
import type { MeterReading } from "../../state/limits/Meters.ts"
import * as GatewayError from "../GatewayError.ts"
import type * as Request from "../request/Request.ts"
import * as RequestBody from "../request/RequestBody.ts"
import type { BodyFailure, Wire } from "../request/Wire.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type * as Tracing from "../telemetry/Tracing.ts"
import * as Billing from "../usage/Billing.ts"
import * as BufferedResponse from "./BufferedResponse.ts"
import type { Destination } from "./Destination.ts"
import type * as Forward from "./Forward.ts"
import * as LocationHeaders from "./LocationHeaders.ts"
import * as RequestLifecycle from "./RequestLifecycle.ts"
import * as StreamedResponse from "./StreamedResponse.ts"
import * as UpstreamRequest from "./UpstreamRequest.ts"

/** The result of the upstream exchange. It is known before the client receives the end of the response. */
interface ExchangeOutcome {
  readonly status: number
  readonly error: GatewayError.GatewayError | undefined
  readonly upstreamMs?: number
  readonly firstByteAt?: number | undefined
  readonly headSent?: boolean
}

interface AppliedPolicy {
  readonly policy: Pick<KeyPolicy, "max_request_body_bytes" | "max_response_body_bytes">
  readonly readings: ReadonlyArray<MeterReading>
}

export interface StreamedRequestOptions {
  readonly request: Request.Request
  readonly target: RoutedRequest
  readonly destination: Destination
  readonly key: KeyRecord | undefined
  /** The request body, if the gateway has read it. Otherwise the client's body is streamed. */
  readonly bufferedBody?: Buffer | undefined
  readonly onResponse?: () => void
  /** By default no policy applies. Only the limits of the route apply then. */
  readonly appliedPolicy?: AppliedPolicy
  readonly rewriteHeaders?: Forward.ForwardOptions["rewriteHeaders"]
  readonly clientKind?: ClientKind
  readonly observer?: Forward.ResponseObserver | undefined
  readonly inspector?: BufferedResponse.ResponseInspector | undefined
  /** Records the outcome, then calls `then`, which ends the response. By default nothing is recorded. */
  readonly settle?: (outcome: ExchangeOutcome, then: () => void) => void
}

/** Forwards an admitted request. Body and response are streamed unless the gateway must read them. */
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
  const exchange = span.startExchange({ base: destination.base, provider: options.target.provider })
  const forwardOptions = forwardOptionsOf(options, appliedPolicy, exchange.traceparent, now)
  const conclude = ({ finish, result }: Forward.PendingResponse) => {
    exchange.end(result)
    const outcome: ExchangeOutcome = {
      status: result.status ?? result.error?.status ?? RequestLifecycle.clientClosedStatus,
      error: result.error,
      upstreamMs: result.endedAt - sentAt,
      firstByteAt: result.firstByteAt,
      headSent: result.headSent
    }
    settle(outcome, () => {
      const end = () =>
        lifecycle.end({
          ...outcome,
          streamed: false,
          aborted: result.headSent && !result.isComplete,
          bill: Billing.unbilled
        })
      if (result.error !== undefined && !result.headSent) {
        RequestLifecycle.sendRefusal(request, result.error, appliedPolicy.readings, now())
        end()
      } else if (finish()) end()
      else request.wire.onFlushed(end, options.target.config.timeoutMs)
    })
  }
  return inspector === undefined
    ? StreamedResponse.send(upstream, request.wire, forwardOptions, conclude, lifecycle.fail)
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
    // The terminal event matters only if usage must be recorded before it. This request records no usage.
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

/** Location headers of an upstream with a path prefix contain that prefix. They are rewritten for the client. */
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

/** A POST is always sent upstream with a body, which is empty if the client sent none. */
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
