import { Cause, Exit } from "effect"
import * as Headers from "../../http/Headers.ts"
import * as SseLines from "../../http/SseLines.ts"
import type { BodyLimit } from "../../policy/routes/BodyLimit.ts"
import type { Flow, Upstream, UpstreamError } from "../../services/Upstream.ts"
import { GatewayError } from "../GatewayError.ts"
import * as ContentTypes from "../request/ContentTypes.ts"
import type { Wire } from "../request/Wire.ts"
import type { ExceededLimit } from "../usage/DenialRecords.ts"
import * as UsageTap from "../usage/UsageTap.ts"
import * as ExchangeErrors from "./ExchangeErrors.ts"
import { FilteredStream } from "./FilteredStream.ts"
import * as Forward from "./Forward.ts"
import * as ResponseUsage from "./ResponseUsage.ts"
import { SecretMask } from "./SecretMask.ts"
import * as SseEventLimit from "./SseEventLimit.ts"
import * as SseTerminator from "./SseTerminator.ts"

/**
 * Forwards request and response byte for byte and calls `done` once. The last bytes of the response wait for `finish`,
 * so that the usage record exists before the client sees the end. Returns the function to call when the client
 * disconnects.
 */
export const send = (
  upstream: Upstream["Service"],
  wire: Wire,
  options: Forward.ForwardOptions,
  done: (response: Forward.PendingResponse) => void,
  onDefect: (defect: unknown) => void
): (() => void) =>
  Forward.exchange(upstream, options.exchange, (stop) => new StreamedResponse(wire, options, stop), done, onDefect)

export const neverSent = (wire: Wire, options: Forward.ForwardOptions): Forward.PendingResponse =>
  new StreamedResponse(wire, options, () => {}).conclude(Exit.interrupt(), false)

/** A class is cheaper than closures, and this code runs for every streamed response. */
export class StreamedResponse implements Forward.ResponseSink {
  readonly #wire: Wire
  readonly #options: Forward.ForwardOptions
  #status: number | undefined
  #headSent = false
  #fallbackStatus: number | undefined
  #cutBy: ExceededLimit | undefined
  #usageTap: UsageTap.UsageTap = UsageTap.passthrough
  #receivedBytes = 0
  #limit: BodyLimit
  #canAppendEvent = false
  #isWithinEvent = false
  /** The bytes that remain of the content-length. At zero the client considers the response complete. */
  #bytesLeft = Number.POSITIVE_INFINITY
  /** The newest bytes. They are held back, because the client could mistake them for the end of the response. */
  readonly #held: Array<Buffer> = []
  #heldBytes = 0
  readonly #stop: () => void
  #cancelTimer: (() => void) | undefined
  #mask: SecretMask | undefined
  #filtered: FilteredStream | undefined
  /** The error of a stream that no filter can read. */
  #unreadable: GatewayError | undefined
  #exceedsEventLimit: ((chunk: Buffer) => boolean) | undefined
  #isTerminated: ((chunk: Buffer) => boolean) | undefined
  #firstByteAt: number | undefined

  constructor(wire: Wire, options: Forward.ForwardOptions, stop: () => void) {
    this.#wire = wire
    this.#options = options
    this.#stop = stop
    this.#limit = options.limits.whole
  }

  head(status: number, headers: Headers.RawHeaders): Flow {
    const options = this.#options
    if (options.mayFallBack && ExchangeErrors.fallbackStatuses.has(status)) {
      this.#fallbackStatus = status
      return "stop"
    }
    this.#status = status
    this.#mask = SecretMask.forStatus(status, options.credential)
    this.#firstByteAt = options.now()
    options.onResponse()
    const streams = Headers.isEventStream(headers)
    if (streams) {
      this.#filtered = this.#filteredStream()
      // A filter may hold a whole stream in memory, so the limit for other responses applies to it.
      this.#limit = options.streamFilter?.holdsWholeStream === true ? options.limits.whole : options.limits.stream
    }
    // Responses to HEAD and with status 204 or 304 have no body. Their content-length does not apply here.
    const length =
      options.exchange.method === "HEAD" || !Forward.statusAllowsBody(status)
        ? undefined
        : Headers.contentLength(headers)
    if (length !== undefined && length > this.#limit.bytes) {
      this.#usageTap = ResponseUsage.tapOfRefused(options.usageReading, status, headers, length)
      return this.#cutOff("size")
    }
    const { removesBytes, tap } = ResponseUsage.tapFor(options.usageReading, status, headers)
    this.#usageTap = tap
    options.observer?.onHead(status, headers)
    if (streams) {
      const isPlain = Headers.contentEncoding(headers) === "identity"
      const isReadable = ContentTypes.unreadableEncoding(headers) === undefined
      const unreadable = isReadable ? this.#filtered?.reserve(length ?? this.#limit.bytes) : encodedStream
      if (this.#filtered !== undefined && unreadable !== undefined) {
        this.#unreadable = unreadable
        return "stop"
      }
      this.#canAppendEvent = isPlain && (length === undefined || this.#filtered !== undefined)
      if (options.hasTerminalEvent) this.#isTerminated = SseTerminator.makeDetector()
      if (options.streamLimits !== undefined) this.#applyStreamLimits(options.streamLimits)
    }
    // If the tap or the filter changes bytes, the response no longer has its content-length.
    const changesBytes = removesBytes || this.#filtered !== undefined
    if (length !== undefined && length > 0 && !changesBytes) this.#bytesLeft = length
    this.#headSent = true
    const out = Forward.clientHeaders(options, headers, this.#mask)
    this.#wire.head(status, changesBytes || status === 204 ? Headers.without(out, "content-length") : out)
    this.#filtered?.begin()
    return "continue"
  }

  chunk(bytes: Uint8Array): Flow {
    this.#receivedBytes += bytes.length
    if (this.#receivedBytes > this.#limit.bytes) return this.#cutOff("size")
    const chunk = this.#mask === undefined ? Forward.asBuffer(bytes) : this.#mask.push(Forward.asBuffer(bytes))
    if (this.#exceedsEventLimit?.(chunk) === true) return this.#cutOff("event")
    if (this.#filtered !== undefined) return this.#filtered.receive(chunk)
    return this.#send(chunk) ? "continue" : "pause"
  }

  /** Returns `false` if the client reads too slowly. */
  #send(chunk: Buffer): boolean {
    if (this.#usageTap.collectedBody === undefined) this.#options.observer?.onChunk(chunk)
    const out = this.#usageTap.push(chunk)
    if (out === undefined || out.length === 0) return true
    this.#options.responseHash?.update(out)
    this.#bytesLeft -= out.length
    const held = this.#isTerminated?.(out) === true || this.#bytesLeft <= 0
    return held ? this.#hold(out) : this.#write(out)
  }

  /** Holds back only the newest bytes and sends older ones. Returns `false` if the client reads too slowly. */
  #hold(bytes: Buffer): boolean {
    let clientKeepsUp = true
    this.#heldBytes += bytes.length
    for (let oldest = this.#held[0]; oldest !== undefined && this.#heldBytes > maxHeldBytes; oldest = this.#held[0]) {
      this.#held.shift()
      this.#heldBytes -= oldest.length
      clientKeepsUp = this.#wire.write(oldest)
    }
    this.#held.push(bytes)
    return clientKeepsUp
  }

  /** The bytes held so far were not the end of the response, so they are sent first. */
  #write(bytes: Buffer): boolean {
    if (this.#held.length > 0) {
      for (const held of this.#held.splice(0)) this.#wire.write(held)
      this.#heldBytes = 0
    }
    this.#isWithinEvent = this.#canAppendEvent && !SseLines.endsWithBlankLine(bytes)
    return this.#wire.write(bytes)
  }

  onDrain(resume: () => void): void {
    if (this.#filtered === undefined) this.#awaitClient(resume)
    else this.#filtered.onDrain(resume)
  }

  #awaitClient(resume: () => void): void {
    this.#wire.onDrain(resume, this.#options.exchange.idleWithinMs)
  }

  ended(
    exit: Exit.Exit<void, UpstreamError>,
    requestSent: boolean,
    done: (response: Forward.PendingResponse) => void
  ): void {
    const filtered = this.#filtered
    if (filtered !== undefined && Exit.isSuccess(exit)) {
      filtered.complete(this.#mask?.flush(), (isComplete) =>
        done(this.conclude(isComplete ? exit : Exit.interrupt(), requestSent))
      )
    } else {
      filtered?.cancel()
      done(this.conclude(exit, requestSent))
    }
  }

  cancel(): void {
    this.#filtered?.cancel()
  }

  conclude(exit: Exit.Exit<void, UpstreamError>, requestSent: boolean): Forward.PendingResponse {
    const { responseHash, mayFallBack, now } = this.#options
    this.#cancelTimer?.()
    const last = this.#takeLastBytes()
    const blockedBy = this.#blockedBy
    const whole = Exit.isSuccess(exit) && blockedBy === undefined
    const collectedBody = this.#usageTap.collectedBody?.()
    if (collectedBody !== undefined) this.#options.observer?.onChunk(collectedBody)
    if (whole) {
      if (last !== undefined) responseHash?.update(last)
      responseHash?.complete()
    }
    const isCut = this.#cutBy !== undefined || blockedBy !== undefined
    const clientDisconnected = !isCut && Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
    const error =
      blockedBy ??
      (whole || clientDisconnected ? undefined : ExchangeErrors.errorOf(exit, this.#cutBy, this.#options, this.#limit))
    return {
      result: {
        status: this.#headSent ? this.#status : undefined,
        withheldStatus: this.#fallbackStatus ?? (this.#headSent ? undefined : this.#status),
        isComplete: whole,
        headSent: this.#headSent,
        error,
        cutBy: this.#cutBy,
        clientDisconnected,
        requestSent,
        canFallBack:
          mayFallBack &&
          !this.#headSent &&
          !isCut &&
          !clientDisconnected &&
          (this.#fallbackStatus !== undefined || ExchangeErrors.isFallbackError(error)),
        observedUsage: this.#usageTap.observed(),
        firstByteAt: this.#firstByteAt,
        endedAt: now()
      },
      finish: () => this.#finish(whole, clientDisconnected, last, error)
    }
  }

  get #blockedBy(): GatewayError | undefined {
    return this.#unreadable ?? this.#filtered?.blockedBy
  }

  #filteredStream(): FilteredStream | undefined {
    const { streamFilter } = this.#options
    return (
      streamFilter &&
      new FilteredStream(streamFilter, {
        send: (bytes) => this.#send(bytes),
        sendComment: (comment) => this.#wire.write(comment),
        onDrain: (resume) => this.#awaitClient(resume),
        stop: this.#stop
      })
    )
  }

  #takeLastBytes(): Buffer | undefined {
    if (this.#filtered !== undefined) {
      this.#count(this.#filtered.takeUnsent())
      return this.#usageTap.flush()
    }
    const heldBack = this.#mask?.flush()
    const masked = heldBack === undefined || heldBack.length === 0 ? undefined : this.#usageTap.push(heldBack)
    const rest = this.#usageTap.flush()
    if (masked === undefined) return rest
    return rest === undefined ? masked : Buffer.concat([masked, rest])
  }

  /** Bytes that were produced and not sent have usage and name created objects as well. */
  #count(unsent: Buffer): void {
    if (unsent.length === 0) return
    if (this.#usageTap.collectedBody === undefined) this.#options.observer?.onChunk(unsent)
    this.#usageTap.push(unsent)
  }

  #finish(
    whole: boolean,
    clientDisconnected: boolean,
    last: Buffer | undefined,
    error: GatewayError | undefined
  ): boolean {
    const isCut = this.#cutBy !== undefined || this.#blockedBy !== undefined
    if (isCut && this.#headSent && this.#canAppendEvent && error !== undefined) {
      const event = this.#options.renderErrorEvent(error)
      return this.#wire.end(Buffer.from(this.#isWithinEvent ? `\n\n${event}` : event))
    }
    if (whole) {
      if (last !== undefined) this.#held.push(last)
      const end = this.#held.pop()
      for (const bytes of this.#held) this.#wire.write(bytes)
      return this.#wire.end(end)
    }
    if (this.#headSent || clientDisconnected) {
      if (!clientDisconnected && !isCut) for (const bytes of this.#held) this.#wire.write(bytes)
      this.#wire.abort()
    }
    return true
  }

  #cutOff(cutBy: ExceededLimit): Flow {
    this.#cutBy = cutBy
    return "stop"
  }

  #applyStreamLimits({ maxEventBytes, schedule, maxSeconds }: Forward.StreamLimits): void {
    if (maxEventBytes._tag === "Limited") this.#exceedsEventLimit = SseEventLimit.makeDetector(maxEventBytes.max)
    if (maxSeconds._tag === "Unlimited") return
    this.#cancelTimer = schedule(maxSeconds.max * 1000, () => {
      this.#cutBy = "duration"
      this.#stop()
    })
  }
}

const encodedStream = new GatewayError({
  code: "guardrail_unavailable",
  message:
    "The upstream compressed its event stream, or sent it in a charset other than UTF-8, so the guardrails of this key cannot read it and the gateway withholds it. Ask an operator to check the upstream."
})

/** In bytes. The last event of a stream may repeat the entire response. */
const maxHeldBytes = 262_144
