import { Exit, type Redacted } from "effect"
import * as Headers from "../../http/Headers.ts"
import type { ClientKind } from "../../policy/facts/ResponseHeaders.ts"
import type { Limit } from "../../policy/Limit.ts"
import type { ResponseLimits } from "../../policy/routes/BodyLimit.ts"
import type { CancelExchange, Exchange, Sink, Upstream, UpstreamError } from "../../services/Upstream.ts"
import type { GatewayError } from "../GatewayError.ts"
import type { BodyHash } from "../request/BodyHash.ts"
import type { ExceededLimit } from "../usage/DenialRecords.ts"
import type * as UsageTap from "../usage/UsageTap.ts"
import type { StreamFilterOptions } from "./FilteredStream.ts"
import type * as ResponseUsage from "./ResponseUsage.ts"
import type { SecretMask } from "./SecretMask.ts"

export interface ForwardOptions {
  readonly exchange: Exchange
  /** This secret is masked in error responses, because the upstream may repeat the request in them. */
  readonly credential: Redacted.Redacted
  readonly usageReading: ResponseUsage.UsageReading
  readonly limits: ResponseLimits
  readonly hasTerminalEvent: boolean
  readonly renderErrorEvent: (error: GatewayError) => string
  readonly streamLimits?: StreamLimits | undefined
  /** Headers that the gateway adds to the response. Their names are in lower case. */
  readonly addedHeaders: ReadonlyArray<readonly [string, string]>
  readonly rewriteHeaders?: (upstreamHeaders: Headers.RawHeaders) => Headers.RawHeaders
  readonly clientKind?: ClientKind | undefined
  /** Called when the upstream's status arrives. */
  readonly onResponse: () => void
  /** True if a fallback is available. A response with a status such as 429 or 503 is then withheld from the client. */
  readonly mayFallBack: boolean
  readonly requestBodyRefusal?: (() => GatewayError | undefined) | undefined
  readonly observer?: ResponseObserver | undefined
  /** Changes an event stream on its way to the client. It does not see other responses. */
  readonly streamFilter?: StreamFilterOptions | undefined
  readonly responseHash?: BodyHash | undefined
  readonly now: () => number
}

export interface ResponseObserver {
  readonly onHead: (status: number, headers: Headers.RawHeaders) => void
  readonly onChunk: (bytes: Buffer) => void
}

export interface StreamLimits {
  readonly maxSeconds: Limit
  readonly maxEventBytes: Limit
  /** Runs `run` after `ms` milliseconds, unless the returned function is called first. */
  readonly schedule: (ms: number, run: () => void) => () => void
}

export interface ForwardResult {
  readonly status: number | undefined
  /** The upstream's status if its response was withheld from the client, such as by a fallback or a guardrail. */
  readonly withheldStatus?: number | undefined
  readonly isComplete: boolean
  readonly headSent: boolean
  readonly error: GatewayError | undefined
  readonly cutBy: ExceededLimit | undefined
  readonly clientDisconnected: boolean
  /** `false` if the upstream cannot have received any part of the request. */
  readonly requestSent: boolean
  readonly canFallBack: boolean
  readonly observedUsage: UsageTap.ObservedUsage
  readonly firstByteAt: number | undefined
  readonly endedAt: number
}

/** A finished exchange. */
export interface PendingResponse {
  readonly result: ForwardResult
  /** Sends the end of the response. Returns `false` if the caller must wait for the client with `Wire.onFlushed`. */
  readonly finish: () => boolean
}

/** A sink that also knows how the exchange has ended. */
export interface ResponseSink extends Sink {
  /** Calls `done` once with the finished exchange. `requestSent` is false if the upstream received no part of the request. */
  readonly ended: (
    exit: Exit.Exit<void, UpstreamError>,
    requestSent: boolean,
    done: (response: PendingResponse) => void
  ) => void
  /** Called if the client disconnects after `ended`, which may not have called `done` yet. */
  readonly cancel?: () => void
}

/** Runs an exchange whose response goes to a sink. Returns the function to call when the client disconnects. */
export const exchange = (
  upstream: Upstream["Service"],
  request: Exchange,
  makeSink: (stop: () => void) => ResponseSink,
  done: (response: PendingResponse) => void,
  onDefect: (defect: unknown) => void
): (() => void) => {
  let isDone = false
  let cancel: CancelExchange = () => true
  const stop = () => {
    if (isDone) sink.cancel?.()
    else ended(Exit.interrupt(), cancel())
  }
  const sink = makeSink(stop)
  const conclude = (response: PendingResponse) => {
    try {
      done(response)
    } catch (defect) {
      onDefect(defect)
    }
  }
  const ended = (exit: Exit.Exit<void, UpstreamError>, requestSent = true) => {
    if (isDone) return
    isDone = true
    try {
      sink.ended(exit, requestSent, conclude)
    } catch (defect) {
      onDefect(defect)
    }
  }
  try {
    cancel = upstream.exchangeUnsafe(request, sink, ended)
    return stop
  } catch (defect) {
    ended(Exit.die(defect))
    return () => {}
  }
}

export const clientHeaders = (
  options: ForwardOptions,
  upstreamHeaders: Headers.RawHeaders,
  mask: SecretMask | undefined
): Array<string> => {
  const upstreamRequestId = Headers.get(upstreamHeaders, "x-request-id")
  const rewritten = options.rewriteHeaders === undefined ? upstreamHeaders : options.rewriteHeaders(upstreamHeaders)
  const out = Headers.forClient(rewritten, options.addedHeaders, options.clientKind)
  if (upstreamRequestId !== undefined) out.push("x-upstream-request-id", upstreamRequestId)
  return mask === undefined ? out : mask.headers(out)
}

export const statusAllowsBody = (status: number): boolean => status !== 204 && status !== 304

export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
