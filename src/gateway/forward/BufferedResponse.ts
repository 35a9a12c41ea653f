import { Cause, Exit, Result } from "effect"
import * as Headers from "../../http/Headers.ts"
import * as JsonBounds from "../../policy/facts/JsonBounds.ts"
import type { BodyLease } from "../../services/BodyLeases.ts"
import { CollectedBytes } from "../../services/CollectedBytes.ts"
import type { Flow, Upstream, UpstreamError } from "../../services/Upstream.ts"
import { GatewayError } from "../GatewayError.ts"
import * as BodyAdmission from "../request/BodyAdmission.ts"
import * as ContentTypes from "../request/ContentTypes.ts"
import type { Wire } from "../request/Wire.ts"
import type { ExceededLimit } from "../usage/DenialRecords.ts"
import * as UsageTap from "../usage/UsageTap.ts"
import * as ExchangeErrors from "./ExchangeErrors.ts"
import * as Forward from "./Forward.ts"
import * as ResponseUsage from "./ResponseUsage.ts"
import { SecretMask } from "./SecretMask.ts"

/** Inspects a complete response before the client receives any of it. */
export interface ResponseInspector {
  readonly lease: BodyLease
  /** The error for a successful response that is not JSON. The default says that guardrails cannot inspect it. */
  readonly notJsonError?: GatewayError
  /** True if the response may be several JSON documents, one in each line, of whatever type. */
  readonly acceptsLines?: boolean
  /** Calls `done` exactly once, with the text to send or with the error that replaces the response. */
  readonly inspect: (text: string, done: (inspected: Result.Result<string, GatewayError>) => void) => void
}

/**
 * Like `StreamedResponse.send`, but buffers the response and inspects it. Error responses are inspected too if they are JSON. A
 * successful response that is not JSON is withheld, unless it has no body.
 */
export const send = (
  upstream: Upstream["Service"],
  wire: Wire,
  options: Forward.ForwardOptions,
  inspector: ResponseInspector,
  done: (response: Forward.PendingResponse) => void,
  onDefect: (defect: unknown) => void
): (() => void) =>
  Forward.exchange(upstream, options.exchange, () => new BufferedResponse(wire, options, inspector), done, onDefect)

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

export class BufferedResponse implements Forward.ResponseSink {
  readonly #wire: Wire
  readonly #options: Forward.ForwardOptions
  readonly #inspector: ResponseInspector
  readonly #notJsonError: GatewayError
  readonly #collected = new CollectedBytes()
  #status: number | undefined
  #headers: Headers.RawHeaders = []
  #isJson = false
  /** True if memory for the complete response is reserved. Otherwise memory is reserved for each chunk. */
  #isReserved = true
  #fallbackStatus: number | undefined
  #cutBy: ExceededLimit | undefined
  #error: GatewayError | undefined
  #usageTap: UsageTap.UsageTap = UsageTap.passthrough
  #firstByteAt: number | undefined

  constructor(wire: Wire, options: Forward.ForwardOptions, inspector: ResponseInspector) {
    this.#wire = wire
    this.#options = options
    this.#inspector = inspector
    this.#notJsonError = inspector.notJsonError ?? notJson
  }

  head(status: number, headers: Headers.RawHeaders): Flow {
    const options = this.#options
    if (options.mayFallBack && ExchangeErrors.fallbackStatuses.has(status)) {
      this.#fallbackStatus = status
      return "stop"
    }
    this.#status = status
    this.#headers = headers
    this.#firstByteAt = options.now()
    options.onResponse()
    const length = Headers.contentLength(headers)
    if (length !== undefined && length > options.limits.whole.bytes) {
      this.#usageTap = ResponseUsage.tapOfRefused(options.usageReading, status, headers, length)
      return this.#cutOffBySize()
    }
    this.#usageTap = ResponseUsage.tapFor(options.usageReading, status, headers).tap
    options.observer?.onHead(status, headers)
    this.#isJson = isPlain(headers) && (isJson(headers) || this.#inspector.acceptsLines === true)
    // An error in another charset would be read as a different text than the client reads.
    const mustFail = this.#isJson ? ContentTypes.unreadableEncoding(headers) !== undefined : status < 300
    if (mustFail && Forward.statusAllowsBody(status) && length !== 0) return this.#fail(this.#notJsonError)
    // A response of unknown length reserves the maximum in advance. Otherwise memory could run out half-way.
    const room = length ?? options.limits.whole.bytes
    this.#isReserved = Number.isFinite(room)
    return this.#isReserved ? this.#reserve(room) : "continue"
  }

  chunk(bytes: Uint8Array): Flow {
    const chunk = Forward.asBuffer(bytes)
    if (this.#collected.length + chunk.length > this.#options.limits.whole.bytes) return this.#cutOffBySize()
    if (!this.#isReserved && this.#reserve(chunk.length) === "stop") return "stop"
    this.#collected.add(chunk)
    return "continue"
  }

  /** The upstream never calls this method, because `chunk` never returns `pause`. */
  onDrain(): void {}

  #text(): Result.Result<string, GatewayError> | undefined {
    if (!this.#isJson || this.#collected.length === 0) return undefined
    const bytes = this.#collected.toBuffer()
    if (JsonBounds.shapeOf(bytes).excess !== undefined) return Result.fail(jsonTooLarge)
    try {
      const text = utf8.decode(bytes)
      const documents = this.#inspector.acceptsLines ? text.split("\n").filter((line) => line.trim() !== "") : [text]
      for (const document of documents) JSON.parse(document)
      return Result.succeed(text)
    } catch {
      return Result.fail(this.#notJsonError)
    }
  }

  ended(
    exit: Exit.Exit<void, UpstreamError>,
    requestSent: boolean,
    done: (response: Forward.PendingResponse) => void
  ): void {
    const text = Exit.isSuccess(exit) ? this.#text() : undefined
    if (text === undefined) done(this.#uninspected(exit, requestSent))
    else if (Result.isFailure(text)) done(this.#withheld(text.failure, true))
    else {
      this.#inspector.inspect(text.success, (inspected) =>
        done(
          Result.isFailure(inspected)
            ? this.#withheld(inspected.failure, true)
            : this.#released(inspected.success === text.success ? undefined : inspected.success)
        )
      )
    }
  }

  #uninspected(exit: Exit.Exit<void, UpstreamError>, requestSent: boolean): Forward.PendingResponse {
    if (Exit.isSuccess(exit)) return this.#released(undefined)
    const clientDisconnected = Cause.hasInterrupts(exit.cause)
    if (clientDisconnected)
      return this.#pending({ clientDisconnected, requestSent, isComplete: false }, () => {
        this.#wire.abort()
        return true
      })
    return this.#withheld(
      this.#error ?? ExchangeErrors.errorOf(exit, this.#cutBy, this.#options, this.#options.limits.whole),
      false
    )
  }

  #released(text: string | undefined): Forward.PendingResponse {
    const unmasked = text === undefined ? this.#collected.toBuffer() : Buffer.from(text)
    const status = this.#status ?? 502
    const mask = SecretMask.forStatus(status, this.#options.credential)
    const body = mask === undefined ? unmasked : Buffer.concat([mask.push(unmasked), mask.flush()])
    this.#options.responseHash?.update(body)
    this.#options.responseHash?.complete()
    return this.#pending({ status, isComplete: true, headSent: true }, () => {
      this.#wire.head(status, this.#headersFor(status, body.length, mask))
      return this.#wire.end(body.length === 0 ? undefined : body)
    })
  }

  #withheld(error: GatewayError, whole: boolean): Forward.PendingResponse {
    const { mayFallBack } = this.#options
    const withheld = this.#status ?? this.#fallbackStatus
    const fallsBack =
      mayFallBack &&
      (this.#fallbackStatus !== undefined || (this.#status === undefined && ExchangeErrors.isFallbackError(error)))
    return this.#pending({ error, isComplete: whole, canFallBack: fallsBack, withheldStatus: withheld }, () => true)
  }

  #pending(
    passed: Pick<Forward.ForwardResult, "isComplete"> & Partial<Forward.ForwardResult>,
    finish: () => boolean
  ): Forward.PendingResponse {
    const body = this.#collected.toBuffer()
    this.#usageTap.push(body)
    this.#usageTap.flush()
    this.#options.observer?.onChunk(body)
    return {
      result: {
        status: undefined,
        headSent: false,
        error: undefined,
        cutBy: this.#cutBy,
        clientDisconnected: false,
        requestSent: true,
        canFallBack: false,
        observedUsage: this.#usageTap.observed(),
        firstByteAt: this.#firstByteAt,
        endedAt: this.#options.now(),
        ...passed
      },
      finish
    }
  }

  #headersFor(status: number, length: number, mask: SecretMask | undefined): Headers.RawHeaders {
    const out = Headers.without(Forward.clientHeaders(this.#options, this.#headers, mask), "content-length")
    if (Forward.statusAllowsBody(status)) out.push("content-length", String(length))
    return out
  }

  #fail(error: GatewayError): Flow {
    this.#error = error
    return "stop"
  }

  #reserve(room: number): Flow {
    const limitOwner = this.#inspector.lease.grow(room)
    return limitOwner === undefined ? "continue" : this.#fail(BodyAdmission.refusal(limitOwner, "response"))
  }

  #cutOffBySize(): Flow {
    this.#cutBy = "size"
    return "stop"
  }
}

const isPlain = (headers: Headers.RawHeaders): boolean =>
  (Headers.get(headers, "content-encoding") ?? "identity").toLowerCase() === "identity"

const isJson = (headers: Headers.RawHeaders): boolean =>
  /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/.test(Headers.contentType(headers))

const notJson = new GatewayError({
  code: "guardrail_unavailable",
  message:
    "The upstream's response is not JSON in UTF-8, so the guardrails of this key cannot inspect it and the gateway withholds it. Ask an operator to check the upstream."
})

const jsonTooLarge = new GatewayError({
  code: "guardrail_unavailable",
  message:
    "The upstream's response nests too deeply, or holds too many values, for the guardrails of this key to inspect, so the gateway withholds it. Request less output."
})
