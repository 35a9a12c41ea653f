import { Cause, Exit, type Redacted, Result } from "effect"
import * as Headers from "../../http/Headers.ts"
import type { Reader } from "../../policy/facts/AnswerHeaders.ts"
import type { Limit } from "../../policy/Limit.ts"
import { type AnswerLimits, answerTooLarge, type BodyLimit } from "../../policy/routes/BodyLimit.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import type { Cancel, Exchange, Flow, Sink, Upstream, UpstreamError } from "../../services/Upstream.ts"
import { type ErrorCode, GatewayError } from "../GatewayError.ts"
import type { BodyHash } from "../request/BodyHash.ts"
import type { Wire } from "../request/Wire.ts"
import type { CutBy } from "../usage/Denied.ts"
import * as UsageTap from "../usage/UsageTap.ts"
import { SecretMask } from "./SecretMask.ts"
import * as SseEventLimit from "./SseEventLimit.ts"
import * as SseTerminator from "./SseTerminator.ts"

/** How the answer's tokens are read. `hideUsage`: the gateway asked for usage in the client's name. */
export type Reading =
  | { readonly _tag: "Blind" }
  | { readonly _tag: "Tokens"; readonly family: Family; readonly hideUsage: boolean }

export interface Passage {
  readonly exchange: Exchange
  /** What the gateway identifies itself with there: no refusal of the upstream repeats it to the client. */
  readonly credential: Redacted.Redacted
  readonly reading: Reading
  readonly limits: AnswerLimits
  /** The answer's protocol is known: of an event stream, certain events are the last. */
  readonly endsByEvent: boolean
  /** What the client is told where a limit cuts an event stream that has begun. */
  readonly errorEvent: (error: GatewayError) => string
  /** What a policy sets on event streams. */
  readonly stream?: StreamLimits | undefined
  /** Fields of the gateway's own on the answer, lower case. */
  readonly answerHeaders: ReadonlyArray<readonly [string, string]>
  /** What the client is shown in the place of the upstream's fields. */
  readonly headers?: (upstreams: Headers.RawHeaders) => Headers.RawHeaders
  /** Default: a program. */
  readonly reader?: Reader | undefined
  /** The upstream has begun to answer: it has the request. */
  readonly onAnswer: () => void
  /** Another upstream stands ready: an answer that says "not now" is not shown to the client. */
  readonly mayFallBack: boolean
  /** Why the request's body, streamed through, came to no good end. */
  readonly bodyRefusal?: (() => GatewayError | undefined) | undefined
  /** Is shown the upstream's answer while it passes. */
  readonly watch?: AnswerWatch | undefined
  /** Is shown the answer's body as the client gets it. */
  readonly hash?: BodyHash | undefined
  readonly now: () => number
}

export interface AnswerWatch {
  readonly head: (status: number, headers: Headers.RawHeaders) => void
  readonly chunk: (bytes: Buffer) => void
}

export interface StreamLimits {
  readonly seconds: Limit
  readonly eventBytes: Limit
  /** Runs `run` after so long, unless what it answers is called before. */
  readonly later: (ms: number, run: () => void) => () => void
}

/** What the client got, and what was seen on the way. */
export interface Passed {
  /** The upstream's status, when the client has seen it. */
  readonly status: number | undefined
  /** The upstream's status, when the gateway kept its answer from the client. */
  readonly withheld?: number | undefined
  /** The upstream's answer was whole, and the client may have all of it. */
  readonly whole: boolean
  /** The client has seen the upstream's status and headers. */
  readonly headSent: boolean
  readonly error: GatewayError | undefined
  readonly cutBy: CutBy | undefined
  readonly clientGone: boolean
  /** `false`: the client left before the upstream can have had any of the request. */
  readonly begun: boolean
  /** Nothing was shown to the client, and another upstream may do better. */
  readonly fallsBack: boolean
  readonly seen: UsageTap.Seen
  readonly firstByteAt: number | undefined
  readonly endedAt: number
}

/** An exchange that has come to its end, but for the answer's. `finish` lets the client have it. */
export interface Settleable {
  readonly passed: Passed
  readonly finish: () => void
}

/**
 * Sends the request on and the answer back, byte for byte, and tells `done` once, whatever happened (what `done` throws
 * goes to `failed`). The last bytes of an answer wait for `finish`, so that what must be on record when the client has
 * its answer is there. Answers what to call when the client hangs up.
 */
export const pass = (
  upstream: Upstream["Service"],
  wire: Wire,
  passage: Passage,
  done: (settleable: Settleable) => void,
  failed: (defect: unknown) => void
): (() => void) => {
  let over = false
  let cancel: Cancel = () => true
  const stop = () => {
    if (!over) ended(Exit.interrupt(), cancel())
  }
  const answer = new Answer(wire, passage, stop)
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
export const unsent = (wire: Wire, passage: Passage): Settleable =>
  new Answer(wire, passage, () => {}).ended(Exit.interrupt(), false)

/** The answer of one exchange on its way. An object rather than closures, because this is the hot path. */
class Answer implements Sink {
  readonly #wire: Wire
  readonly #passage: Passage
  #status: number | undefined
  #headSent = false
  /** The status of an answer that another upstream is to better. */
  #declined: number | undefined
  #cutBy: CutBy | undefined
  #tap: UsageTap.UsageTap = UsageTap.blind
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

  constructor(wire: Wire, passage: Passage, stop: () => void) {
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
    passage.onAnswer()
    const streams = isEventStream(headers)
    if (streams) this.#limit = passage.limits.stream
    // where no body follows, the length is that of what a GET would get
    const length = passage.exchange.method === "HEAD" || !bodied(status) ? undefined : contentLength(headers)
    if (length !== undefined && length > this.#limit.bytes) {
      this.#tap = untakenTap(passage, status, headers, length)
      return this.#refuse("size")
    }
    const { shortens, tap } = tapFor(passage, status, headers)
    this.#tap = tap
    passage.watch?.head(status, headers)
    if (streams) {
      this.#takesEvents = length === undefined && encodingOf(headers) === "identity"
      if (passage.endsByEvent) this.#mayEnd = SseTerminator.follow()
      if (passage.stream !== undefined) this.#bound(passage.stream)
    }
    // what the tap takes out is not counted in the upstream's length
    if (length !== undefined && length > 0 && !shortens) this.#promised = length
    this.#headSent = true
    const out = headersFor(passage, headers, this.#mask)
    this.#wire.head(status, shortens ? Headers.without(out, "content-length") : out)
    return "continue"
  }

  chunk(bytes: Uint8Array): Flow {
    this.#received += bytes.length
    if (this.#received > this.#limit.bytes) return this.#refuse("size")
    const chunk = this.#mask === undefined ? asBuffer(bytes) : this.#mask.push(asBuffer(bytes))
    if (this.#outgrows?.(chunk) === true) return this.#refuse("event")
    if (this.#tap.answer === undefined) this.#passage.watch?.chunk(chunk)
    const out = this.#tap.push(chunk)
    if (out === undefined || out.length === 0) return "continue"
    this.#passage.hash?.update(out)
    this.#promised -= out.length
    const held = this.#mayEnd?.(out) === true || this.#promised <= 0
    return (held ? this.#hold(out) : this.#write(out)) ? "continue" : "pause"
  }

  /** Whether the client keeps up. The newest bytes are enough to keep the end from it: those before them go. */
  #hold(bytes: Buffer): boolean {
    let keepsUp = true
    this.#heldBytes += bytes.length
    for (let oldest = this.#held[0]; oldest !== undefined && this.#heldBytes > mostHeld; oldest = this.#held[0]) {
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
    this.#withinEvent = this.#takesEvents && !endsEvent(bytes)
    return this.#wire.write(bytes)
  }

  onDrain(resume: () => void): void {
    this.#wire.onDrain(resume, this.#passage.exchange.idleWithinMs)
  }

  ended(exit: Exit.Exit<void, UpstreamError>, begun: boolean): Settleable {
    const { hash, mayFallBack, now } = this.#passage
    this.#disarm?.()
    const whole = Exit.isSuccess(exit)
    const last = this.#last()
    const answer = this.#tap.answer?.()
    if (answer !== undefined) this.#passage.watch?.chunk(answer)
    if (whole) {
      if (last !== undefined) hash?.update(last)
      hash?.complete()
    }
    const clientGone = this.#cutBy === undefined && Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
    const error = whole || clientGone ? undefined : refusalOf(exit, this.#cutBy, this.#passage, this.#limit)
    return {
      passed: {
        status: this.#headSent ? this.#status : undefined,
        withheld: this.#declined ?? (this.#headSent ? undefined : this.#status),
        whole,
        headSent: this.#headSent,
        error,
        cutBy: this.#cutBy,
        clientGone,
        begun,
        fallsBack: mayFallBack && !this.#headSent && !clientGone && (this.#declined !== undefined || failsOver(error)),
        seen: this.#tap.seen(),
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
      const event = this.#passage.errorEvent(error)
      this.#wire.end(Buffer.from(this.#withinEvent ? `\n\n${event}` : event))
    } else if (whole) {
      if (last !== undefined) this.#held.push(last)
      const end = this.#held.pop()
      for (const bytes of this.#held) this.#wire.write(bytes)
      this.#wire.end(end)
    } else if (this.#headSent || clientGone) {
      // the client may still make something of what came
      if (!clientGone && this.#cutBy === undefined) for (const bytes of this.#held) this.#wire.write(bytes)
      this.#wire.cut()
    }
  }

  #refuse(cutBy: CutBy): Flow {
    this.#cutBy = cutBy
    return "stop"
  }

  #bound({ eventBytes, later, seconds }: StreamLimits): void {
    if (eventBytes._tag === "Limited") this.#outgrows = SseEventLimit.follow(eventBytes.max)
    if (seconds._tag === "Unlimited") return
    this.#disarm = later(seconds.max * 1000, () => {
      this.#cutBy = "duration"
      this.#stop()
    })
  }
}

/** Statuses of an upstream that is overloaded or broken. */
export const fallbackStatuses: ReadonlySet<number> = new Set([429, 500, 502, 503, 504])
const fallbackCodes: ReadonlySet<ErrorCode> = new Set(["upstream_connection", "upstream_timeout", "gateway_overloaded"])

export const failsOver = (error: GatewayError | undefined): boolean =>
  error !== undefined && fallbackCodes.has(error.code)

/** The answer's headers as the client gets them. */
export const headersFor = (
  passage: Passage,
  upstreams: Headers.RawHeaders,
  mask: SecretMask | undefined
): Array<string> => {
  const theirs = Headers.get(upstreams, "x-request-id")
  const shown = passage.headers === undefined ? upstreams : passage.headers(upstreams)
  const out = Headers.forClient(shown, passage.answerHeaders, passage.reader)
  if (theirs !== undefined) out.push("x-upstream-request-id", theirs)
  return mask === undefined ? out : mask.headers(out)
}

export const bodied = (status: number): boolean => status !== 204 && status !== 304

export const contentType = (headers: Headers.RawHeaders): string =>
  (Headers.get(headers, "content-type") ?? "").toLowerCase()

const encodingOf = (headers: Headers.RawHeaders): string =>
  (Headers.get(headers, "content-encoding") ?? "identity").toLowerCase()

/** Behind a blank line. One with carriage returns counts as well. */
const endsEvent = (bytes: Buffer): boolean => {
  const [before, last] = bytes
    .subarray(-3)
    .filter((byte) => byte !== carriageReturn)
    .subarray(-2)
  return before === lineFeed && last === lineFeed
}

const lineFeed = 0x0a
const carriageReturn = 0x0d

const isEventStream = (headers: Headers.RawHeaders): boolean => contentType(headers).startsWith("text/event-stream")

export const contentLength = (headers: Headers.RawHeaders): number | undefined => {
  const length = Number(Headers.get(headers, "content-length") ?? Number.NaN)
  return Number.isSafeInteger(length) && length >= 0 ? length : undefined
}

/** Chunks come from the driver as Buffers; a view makes one of any other bytes without a copy. */
export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** How much is kept in memory to read usage from, in bytes; of what is longer only the end is read. */
const wholeAnswer = 4_194_304
const oneEvent = 1_048_576

/** Of bytes that a client would take for the end of its answer: the last event, which may repeat all of it. */
const mostHeld = 262_144

export const tapFor = (
  { reading }: Passage,
  status: number,
  headers: Headers.RawHeaders
): { readonly tap: UsageTap.UsageTap; readonly shortens: boolean } => {
  if (reading._tag === "Blind" || status >= 400 || encodingOf(headers) !== "identity")
    return { tap: UsageTap.blind, shortens: false }
  if (isEventStream(headers)) {
    return reading.hideUsage
      ? { tap: UsageTap.hidingUsage(reading.family, oneEvent), shortens: true }
      : { tap: UsageTap.events(reading.family, oneEvent), shortens: false }
  }
  return {
    tap: mayBeJson(contentType(headers)) ? UsageTap.json(reading.family, wholeAnswer) : UsageTap.blind,
    shortens: false
  }
}

/** Some upstreams send JSON as plain text, or do not say what it is. */
const mayBeJson = (type: string): boolean => type === "" || type.includes("json") || type.startsWith("text/plain")

/** A response refused for its Content-Length was produced all the same, and is billed. */
export const untakenTap = (
  passage: Passage,
  status: number,
  headers: Headers.RawHeaders,
  length: number
): UsageTap.UsageTap => {
  const { tap } = tapFor(passage, status, headers)
  return tap === UsageTap.blind ? tap : UsageTap.untakenJson(length)
}

export const refusalOf = (
  exit: Exit.Exit<void, UpstreamError>,
  cutBy: CutBy | undefined,
  { bodyRefusal, exchange, stream }: Passage,
  limit: BodyLimit
): GatewayError => {
  if (cutBy !== undefined) {
    return new GatewayError({ code: "response_body_too_large", message: excesses(limit, stream)[cutBy] })
  }
  const refused = bodyRefusal?.()
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

const excesses = (limit: BodyLimit, stream: StreamLimits | undefined): Record<CutBy, string> => ({
  size: answerTooLarge(limit),
  event: `An event of the answer is larger than ${most(stream?.eventBytes)} bytes (max_sse_event_bytes of this key's policy). Ask for less, or ask an operator to raise it.`,
  duration: `The answer streamed for longer than ${most(stream?.seconds)} seconds (max_stream_duration_seconds of this key's policy). Ask for less, or ask an operator to raise it.`
})

const most = (limit: Limit | undefined): string => (limit?._tag === "Limited" ? String(limit.max) : "allowed")

const connectionMessages = {
  refused: "The upstream could not be reached.",
  reset: "The upstream closed the connection before its answer was whole.",
  malformed: "The upstream's answer is not valid HTTP.",
  stopped: "The exchange with the upstream was stopped."
} as const
