import { Cause, Exit, type Redacted, Result } from "effect"
import * as Headers from "../../http/Headers.ts"
import type { ClientKind } from "../../policy/facts/ResponseHeaders.ts"
import type { Limit } from "../../policy/Limit.ts"
import { type BodyLimit, type ResponseLimits, responseTooLarge } from "../../policy/routes/BodyLimit.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import type { CancelExchange, Exchange, Flow, Sink, Upstream, UpstreamError } from "../../services/Upstream.ts"
import { type ErrorCode, GatewayError } from "../GatewayError.ts"
import type { BodyHash } from "../request/BodyHash.ts"
import type { Wire } from "../request/Wire.ts"
import type { ExceededLimit } from "../usage/DenialRecords.ts"
import * as UsageTap from "../usage/UsageTap.ts"
import { SecretMask } from "./SecretMask.ts"
import * as SseEventLimit from "./SseEventLimit.ts"
import * as SseTerminator from "./SseTerminator.ts"

/** How the answer's tokens are read. `hideUsage`: the gateway asked for usage in the client's name. */
export type UsageReading =
  | { readonly _tag: "Blind" }
  | { readonly _tag: "Tokens"; readonly family: Family; readonly hideUsage: boolean }

export interface ForwardOptions {
  readonly exchange: Exchange
  /** What the gateway identifies itself with there: no refusal of the upstream repeats it to the client. */
  readonly credential: Redacted.Redacted
  readonly usageReading: UsageReading
  readonly limits: ResponseLimits
  /** The answer's protocol is known: of an event stream, certain events are the last. */
  readonly hasTerminalEvent: boolean
  /** What the client is told where a limit cuts an event stream that has begun. */
  readonly renderErrorEvent: (error: GatewayError) => string
  /** What a policy sets on event streams. */
  readonly streamLimits?: StreamLimits | undefined
  /** Fields of the gateway's own on the answer, lower case. */
  readonly addedHeaders: ReadonlyArray<readonly [string, string]>
  /** What the client is shown in the place of the upstream's fields. */
  readonly rewriteHeaders?: (upstreams: Headers.RawHeaders) => Headers.RawHeaders
  /** Default: a program. */
  readonly clientKind?: ClientKind | undefined
  /** The upstream has begun to answer: it has the request. */
  readonly onResponse: () => void
  /** Another upstream stands ready: an answer that says "not now" is not shown to the client. */
  readonly mayFallBack: boolean
  /** Why the request's body, streamed through, came to no good end. */
  readonly requestBodyRefusal?: (() => GatewayError | undefined) | undefined
  /** Is shown the upstream's answer while it passes. */
  readonly observer?: ResponseObserver | undefined
  /** Is shown the answer's body as the client gets it. */
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
  /** Runs `run` after so long, unless what it answers is called before. */
  readonly schedule: (ms: number, run: () => void) => () => void
}

/** What the client got, and what was seen on the way. */
export interface ForwardResult {
  /** The upstream's status, when the client has seen it. */
  readonly status: number | undefined
  /** The upstream's status, when the gateway kept its answer from the client. */
  readonly withheldStatus?: number | undefined
  /** The upstream's answer was whole, and the client may have all of it. */
  readonly isComplete: boolean
  /** The client has seen the upstream's status and headers. */
  readonly headSent: boolean
  readonly error: GatewayError | undefined
  readonly cutBy: ExceededLimit | undefined
  readonly clientDisconnected: boolean
  /** `false`: the client left before the upstream can have had any of the request. */
  readonly requestSent: boolean
  /** Nothing was shown to the client, and another upstream may do better. */
  readonly canFallBack: boolean
  readonly observedUsage: UsageTap.ObservedUsage
  readonly firstByteAt: number | undefined
  readonly endedAt: number
}

/** An exchange that has come to its end, but for the answer's. `finish` lets the client have it. */
export interface PendingResponse {
  readonly result: ForwardResult
  readonly finish: () => void
}

/**
 * Sends the request on and the answer back, byte for byte, and tells `done` once, whatever happened (what `done` throws
 * goes to `failed`). The last bytes of an answer wait for `finish`, so that what must be on record when the client has
 * its answer is there. Answers what to call when the client hangs up.
 */
export const send = (
  upstream: Upstream["Service"],
  wire: Wire,
  passage: ForwardOptions,
  done: (settleable: PendingResponse) => void,
  failed: (defect: unknown) => void
): (() => void) => {
  let over = false
  let cancel: CancelExchange = () => true
  const stop = () => {
    if (!over) ended(Exit.interrupt(), cancel())
  }
  const answer = new StreamedResponse(wire, passage, stop)
  const ended = (exit: Exit.Exit<void, UpstreamError>, begun = true) => {
    if (over) return
    over = true
    try {
      done(answer.ended(exit, begun))
    } catch (defect) {
      failed(defect)
    }
  }
  try {
    cancel = upstream.exchangeUnsafe(passage.exchange, answer, ended)
    return stop
  } catch (defect) {
    ended(Exit.die(defect))
    return () => {}
  }
}

/** For a client that is gone before anything was sent. */
export const neverSent = (wire: Wire, passage: ForwardOptions): PendingResponse =>
  new StreamedResponse(wire, passage, () => {}).ended(Exit.interrupt(), false)

/** The answer of one exchange on its way. An object rather than closures, because this is the hot path. */
class StreamedResponse implements Sink {
  readonly #wire: Wire
  readonly #passage: ForwardOptions
  #status: number | undefined
  #headSent = false
  /** The status of an answer that another upstream is to better. */
  #declined: number | undefined
  #cutBy: ExceededLimit | undefined
  #tap: UsageTap.UsageTap = UsageTap.passthrough
  #received = 0
  #limit: BodyLimit
  /** The client reads events, of which the gateway may add one. */
  #takesEvents = false
  /** The last bytes that the client was sent do not end an event. */
  #withinEvent = false
  /** Bytes to go until the answer has the length that the client was promised. */
  #promised = Number.POSITIVE_INFINITY
  /** What the client would take for the end. */
  readonly #held: Array<Buffer> = []
  #heldBytes = 0
  readonly #stop: () => void
  #disarm: (() => void) | undefined
  #mask: SecretMask | undefined
  #outgrows: ((chunk: Buffer) => boolean) | undefined
  #mayEnd: ((chunk: Buffer) => boolean) | undefined
  #firstByteAt: number | undefined

  constructor(wire: Wire, passage: ForwardOptions, stop: () => void) {
    this.#wire = wire
    this.#passage = passage
    this.#stop = stop
    this.#limit = passage.limits.whole
  }

  head(status: number, headers: Headers.RawHeaders): Flow {
    const passage = this.#passage
    if (passage.mayFallBack && fallbackStatuses.has(status)) {
      this.#declined = status
      return "stop"
    }
    this.#status = status
    this.#mask = SecretMask.forStatus(status, passage.credential)
    this.#firstByteAt = passage.now()
    passage.onResponse()
    const streams = isEventStream(headers)
    if (streams) this.#limit = passage.limits.stream
    // where no body follows, the length is that of what a GET would get
    const length =
      passage.exchange.method === "HEAD" || !statusAllowsBody(status) ? undefined : contentLengthOf(headers)
    if (length !== undefined && length > this.#limit.bytes) {
      this.#tap = refusedResponseTap(passage, status, headers, length)
      return this.#refuse("size")
    }
    const { removesBytes, tap } = usageTapFor(passage, status, headers)
    this.#tap = tap
    passage.observer?.onHead(status, headers)
    if (streams) {
      this.#takesEvents = length === undefined && contentEncodingOf(headers) === "identity"
      if (passage.hasTerminalEvent) this.#mayEnd = SseTerminator.makeDetector()
      if (passage.streamLimits !== undefined) this.#bound(passage.streamLimits)
    }
    // what the tap takes out is not counted in the upstream's length
    if (length !== undefined && length > 0 && !removesBytes) this.#promised = length
    this.#headSent = true
    const out = clientHeaders(passage, headers, this.#mask)
    this.#wire.head(status, removesBytes ? Headers.without(out, "content-length") : out)
    return "continue"
  }

  chunk(bytes: Uint8Array): Flow {
    this.#received += bytes.length
    if (this.#received > this.#limit.bytes) return this.#refuse("size")
    const chunk = this.#mask === undefined ? asBuffer(bytes) : this.#mask.push(asBuffer(bytes))
    if (this.#outgrows?.(chunk) === true) return this.#refuse("event")
    if (this.#tap.collectedBody === undefined) this.#passage.observer?.onChunk(chunk)
    const out = this.#tap.push(chunk)
    if (out === undefined || out.length === 0) return "continue"
    this.#passage.responseHash?.update(out)
    this.#promised -= out.length
    const held = this.#mayEnd?.(out) === true || this.#promised <= 0
    return (held ? this.#hold(out) : this.#write(out)) ? "continue" : "pause"
  }

  /** Whether the client keeps up. The newest bytes are enough to keep the end from it: those before them go. */
  #hold(bytes: Buffer): boolean {
    let keepsUp = true
    this.#heldBytes += bytes.length
    for (let oldest = this.#held[0]; oldest !== undefined && this.#heldBytes > maxHeldBytes; oldest = this.#held[0]) {
      this.#held.shift()
      this.#heldBytes -= oldest.length
      keepsUp = this.#wire.write(oldest)
    }
    this.#held.push(bytes)
    return keepsUp
  }

  /** What was held was not the end. */
  #write(bytes: Buffer): boolean {
    if (this.#held.length > 0) {
      for (const held of this.#held.splice(0)) this.#wire.write(held)
      this.#heldBytes = 0
    }
    this.#withinEvent = this.#takesEvents && !endsWithBlankLine(bytes)
    return this.#wire.write(bytes)
  }

  onDrain(resume: () => void): void {
    this.#wire.onDrain(resume, this.#passage.exchange.idleWithinMs)
  }

  ended(exit: Exit.Exit<void, UpstreamError>, begun: boolean): PendingResponse {
    const { responseHash, mayFallBack, now } = this.#passage
    this.#disarm?.()
    const whole = Exit.isSuccess(exit)
    const last = this.#last()
    const answer = this.#tap.collectedBody?.()
    if (answer !== undefined) this.#passage.observer?.onChunk(answer)
    if (whole) {
      if (last !== undefined) responseHash?.update(last)
      responseHash?.complete()
    }
    const clientGone = this.#cutBy === undefined && Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
    const error = whole || clientGone ? undefined : errorOf(exit, this.#cutBy, this.#passage, this.#limit)
    return {
      result: {
        status: this.#headSent ? this.#status : undefined,
        withheldStatus: this.#declined ?? (this.#headSent ? undefined : this.#status),
        isComplete: whole,
        headSent: this.#headSent,
        error,
        cutBy: this.#cutBy,
        clientDisconnected: clientGone,
        requestSent: begun,
        canFallBack:
          mayFallBack && !this.#headSent && !clientGone && (this.#declined !== undefined || isFallbackError(error)),
        observedUsage: this.#tap.observed(),
        firstByteAt: this.#firstByteAt,
        endedAt: now()
      },
      finish: () => this.#finish(whole, clientGone, last, error)
    }
  }

  /** The end of the answer, as far as it was held back on its way. */
  #last(): Buffer | undefined {
    const heldBack = this.#mask?.flush()
    const masked = heldBack === undefined || heldBack.length === 0 ? undefined : this.#tap.push(heldBack)
    const rest = this.#tap.flush()
    if (masked === undefined) return rest
    return rest === undefined ? masked : Buffer.concat([masked, rest])
  }

  #finish(whole: boolean, clientGone: boolean, last: Buffer | undefined, error: GatewayError | undefined): void {
    if (this.#cutBy !== undefined && this.#headSent && this.#takesEvents && error !== undefined) {
      const event = this.#passage.renderErrorEvent(error)
      this.#wire.end(Buffer.from(this.#withinEvent ? `\n\n${event}` : event))
    } else if (whole) {
      if (last !== undefined) this.#held.push(last)
      const end = this.#held.pop()
      for (const bytes of this.#held) this.#wire.write(bytes)
      this.#wire.end(end)
    } else if (this.#headSent || clientGone) {
      // the client may still make something of what came
      if (!clientGone && this.#cutBy === undefined) for (const bytes of this.#held) this.#wire.write(bytes)
      this.#wire.abort()
    }
  }

  #refuse(cutBy: ExceededLimit): Flow {
    this.#cutBy = cutBy
    return "stop"
  }

  #bound({ maxEventBytes, schedule, maxSeconds }: StreamLimits): void {
    if (maxEventBytes._tag === "Limited") this.#outgrows = SseEventLimit.makeDetector(maxEventBytes.max)
    if (maxSeconds._tag === "Unlimited") return
    this.#disarm = schedule(maxSeconds.max * 1000, () => {
      this.#cutBy = "duration"
      this.#stop()
    })
  }
}

/** Statuses of an upstream that is overloaded or broken. */
export const fallbackStatuses: ReadonlySet<number> = new Set([429, 500, 502, 503, 504])
const fallbackCodes: ReadonlySet<ErrorCode> = new Set(["upstream_connection", "upstream_timeout", "gateway_overloaded"])

export const isFallbackError = (error: GatewayError | undefined): boolean =>
  error !== undefined && fallbackCodes.has(error.code)

/** The answer's headers as the client gets them. */
export const clientHeaders = (
  passage: ForwardOptions,
  upstreams: Headers.RawHeaders,
  mask: SecretMask | undefined
): Array<string> => {
  const theirs = Headers.get(upstreams, "x-request-id")
  const shown = passage.rewriteHeaders === undefined ? upstreams : passage.rewriteHeaders(upstreams)
  const out = Headers.forClient(shown, passage.addedHeaders, passage.clientKind)
  if (theirs !== undefined) out.push("x-upstream-request-id", theirs)
  return mask === undefined ? out : mask.headers(out)
}

export const statusAllowsBody = (status: number): boolean => status !== 204 && status !== 304

export const contentTypeOf = (headers: Headers.RawHeaders): string =>
  (Headers.get(headers, "content-type") ?? "").toLowerCase()

const contentEncodingOf = (headers: Headers.RawHeaders): string =>
  (Headers.get(headers, "content-encoding") ?? "identity").toLowerCase()

/** Behind a blank line. One with carriage returns counts as well. */
const endsWithBlankLine = (bytes: Buffer): boolean => {
  const [before, last] = bytes
    .subarray(-3)
    .filter((byte) => byte !== carriageReturn)
    .subarray(-2)
  return before === lineFeed && last === lineFeed
}

const lineFeed = 0x0a
const carriageReturn = 0x0d

const isEventStream = (headers: Headers.RawHeaders): boolean => contentTypeOf(headers).startsWith("text/event-stream")

export const contentLengthOf = (headers: Headers.RawHeaders): number | undefined => {
  const length = Number(Headers.get(headers, "content-length") ?? Number.NaN)
  return Number.isSafeInteger(length) && length >= 0 ? length : undefined
}

/** Chunks come from the driver as Buffers; a view makes one of any other bytes without a copy. */
export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** How much is kept in memory to read usage from, in bytes; of what is longer only the end is read. */
const maxJsonUsageBytes = 4_194_304
const maxEventUsageBytes = 1_048_576

/** Of bytes that a client would take for the end of its answer: the last event, which may repeat all of it. */
const maxHeldBytes = 262_144

export const usageTapFor = (
  { usageReading }: ForwardOptions,
  status: number,
  headers: Headers.RawHeaders
): { readonly tap: UsageTap.UsageTap; readonly removesBytes: boolean } => {
  if (usageReading._tag === "Blind" || status >= 400 || contentEncodingOf(headers) !== "identity")
    return { tap: UsageTap.passthrough, removesBytes: false }
  if (isEventStream(headers)) {
    return usageReading.hideUsage
      ? { tap: UsageTap.hidingUsage(usageReading.family, maxEventUsageBytes), removesBytes: true }
      : { tap: UsageTap.events(usageReading.family, maxEventUsageBytes), removesBytes: false }
  }
  return {
    tap: mayBeJson(contentTypeOf(headers))
      ? UsageTap.json(usageReading.family, maxJsonUsageBytes)
      : UsageTap.passthrough,
    removesBytes: false
  }
}

/** Some upstreams send JSON as plain text, or do not say what it is. */
const mayBeJson = (type: string): boolean => type === "" || type.includes("json") || type.startsWith("text/plain")

/** A response refused for its Content-Length was produced all the same, and is billed. */
export const refusedResponseTap = (
  passage: ForwardOptions,
  status: number,
  headers: Headers.RawHeaders,
  length: number
): UsageTap.UsageTap => {
  const { tap } = usageTapFor(passage, status, headers)
  return tap === UsageTap.passthrough ? tap : UsageTap.unreadJson(length)
}

export const errorOf = (
  exit: Exit.Exit<void, UpstreamError>,
  cutBy: ExceededLimit | undefined,
  { requestBodyRefusal, exchange, streamLimits }: ForwardOptions,
  limit: BodyLimit
): GatewayError => {
  if (cutBy !== undefined) {
    return new GatewayError({ code: "response_body_too_large", message: limitMessages(limit, streamLimits)[cutBy] })
  }
  const refused = requestBodyRefusal?.()
  if (refused !== undefined) return refused
  const error = Exit.isFailure(exit) ? Result.getOrUndefined(Cause.findError(exit.cause)) : undefined
  if (error === undefined) return new GatewayError({ code: "internal_error", message: "The gateway failed." })
  if (error.reason === "busy") {
    const limit = error.limit === undefined ? "" : ` ${error.limit}`
    const whose = error.whose === "caller" ? "this key, or this address," : "the gateway"
    return new GatewayError({
      code: "gateway_overloaded",
      message: `All${limit} connections that ${whose} may have to this upstream are busy, and this request's turn did not come. Try again shortly.`,
      retryAfterSeconds: 1
    })
  }
  if (error.reason === "timeout") {
    const what =
      error.phase === "connect"
        ? "accept a connection"
        : error.phase === "headers"
          ? "begin its answer"
          : "go on with its answer"
    return new GatewayError({
      code: "upstream_timeout",
      message: `The upstream did not ${what} within ${exchange.headersWithinMs} ms (timeout_ms of the route).`
    })
  }
  return new GatewayError({ code: "upstream_connection", message: connectionMessages[error.reason] })
}

const limitMessages = (limit: BodyLimit, stream: StreamLimits | undefined): Record<ExceededLimit, string> => ({
  size: responseTooLarge(limit),
  event: `An event of the answer is larger than ${formatLimit(stream?.maxEventBytes)} bytes (max_sse_event_bytes of this key's policy). Ask for less, or ask an operator to raise it.`,
  duration: `The answer streamed for longer than ${formatLimit(stream?.maxSeconds)} seconds (max_stream_duration_seconds of this key's policy). Ask for less, or ask an operator to raise it.`
})

const formatLimit = (limit: Limit | undefined): string => (limit?._tag === "Limited" ? String(limit.max) : "allowed")

const connectionMessages = {
  refused: "The upstream could not be reached.",
  reset: "The upstream closed the connection before its answer was whole.",
  malformed: "The upstream's answer is not valid HTTP.",
  stopped: "The exchange with the upstream was stopped."
} as const
