import { Cause, Exit, Result } from "effect"
import * as Headers from "../../http/Headers.ts"
import * as JsonBounds from "../../policy/facts/JsonBounds.ts"
import type { BodyLease } from "../../services/BodyLeases.ts"
import { CollectedBytes } from "../../services/CollectedBytes.ts"
import type { Flow, Sink, Upstream, UpstreamError } from "../../services/Upstream.ts"
import { GatewayError } from "../GatewayError.ts"
import * as BodyAdmission from "../request/BodyAdmission.ts"
import type { Wire } from "../request/Wire.ts"
import type { ExceededLimit } from "../usage/DenialRecords.ts"
import * as UsageTap from "../usage/UsageTap.ts"
import * as Forward from "./Forward.ts"
import { SecretMask } from "./SecretMask.ts"

/** Who looks at an answer before the client sees any of it. */
export interface ResponseInspector {
  /** Room for the answer, among all the bodies that the process holds. */
  readonly lease: BodyLease
  /** Why an answer that is no JSON does not pass; without one, that it is for the guardrails. */
  readonly notJsonError?: GatewayError
  /** Tells `done` once: the answer's text as it may go, or why it may not. */
  readonly inspect: (text: string, done: (judged: Result.Result<string, GatewayError>) => void) => void
}

/**
 * As `Forward.pass`, for an answer that is read whole and judged first. JSON is shown to the judge, whatever its
 * status. An answer that cannot be shown passes only where it is none: without a body, or a refusal of the upstream.
 */
export const send = (
  upstream: Upstream["Service"],
  wire: Wire,
  passage: Forward.ForwardOptions,
  judge: ResponseInspector,
  done: (settleable: Forward.PendingResponse) => void,
  failed: (defect: unknown) => void
): (() => void) => {
  const answer = new BufferedResponse(wire, passage, judge)
  let over = false
  const conclude = (settleable: Forward.PendingResponse) => {
    try {
      done(settleable)
    } catch (defect) {
      failed(defect)
    }
  }
  const ended = (exit: Exit.Exit<void, UpstreamError>, begun = true) => {
    if (over) return
    over = true
    try {
      const text = Exit.isSuccess(exit) ? answer.text() : undefined
      if (text === undefined) return conclude(answer.ended(exit, begun))
      if (Result.isFailure(text)) return conclude(answer.withheld(text.failure))
      judge.inspect(text.success, (judged) =>
        conclude(
          Result.isFailure(judged)
            ? answer.withheld(judged.failure)
            : answer.released(judged.success === text.success ? undefined : judged.success)
        )
      )
    } catch (defect) {
      failed(defect)
    }
  }
  try {
    const cancel = upstream.exchangeUnsafe(passage.exchange, answer, ended)
    return () => {
      if (!over) ended(Exit.interrupt(), cancel())
    }
  } catch (defect) {
    ended(Exit.die(defect))
    return () => {}
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** An answer in memory, until it is known what may become of it. */
class BufferedResponse implements Sink {
  readonly #wire: Wire
  readonly #passage: Forward.ForwardOptions
  readonly #lease: BodyLease
  readonly #notJson: GatewayError
  readonly #collected = new CollectedBytes()
  #status: number | undefined
  #headers: Headers.RawHeaders = []
  #isJson = false
  /** How much it may come to is known; else it takes room as it comes. */
  #bounded = true
  #declined: number | undefined
  #cutBy: ExceededLimit | undefined
  #refused: GatewayError | undefined
  #tap: UsageTap.UsageTap = UsageTap.passthrough
  #firstByteAt: number | undefined

  constructor(wire: Wire, passage: Forward.ForwardOptions, { lease, notJsonError }: ResponseInspector) {
    this.#wire = wire
    this.#passage = passage
    this.#lease = lease
    this.#notJson = notJsonError ?? notJson
  }

  head(status: number, headers: Headers.RawHeaders): Flow {
    const passage = this.#passage
    if (passage.mayFallBack && Forward.fallbackStatuses.has(status)) {
      this.#declined = status
      return "stop"
    }
    this.#status = status
    this.#headers = headers
    this.#firstByteAt = passage.now()
    passage.onResponse()
    const length = Forward.contentLengthOf(headers)
    if (length !== undefined && length > passage.limits.whole.bytes) {
      this.#tap = Forward.refusedResponseTap(passage, status, headers, length)
      return this.#refuseLarge()
    }
    this.#tap = Forward.usageTapFor(passage, status, headers).tap
    passage.observer?.onHead(status, headers)
    this.#isJson = isPlainJson(headers)
    if (!this.#isJson && status < 300 && Forward.statusAllowsBody(status) && length !== 0)
      return this.#refuse(this.#notJson)
    // an answer of unknown length takes the room that it may come to need: it must not fail half-way
    const room = length ?? passage.limits.whole.bytes
    this.#bounded = Number.isFinite(room)
    return this.#bounded ? this.#take(room) : "continue"
  }

  chunk(bytes: Uint8Array): Flow {
    const chunk = Forward.asBuffer(bytes)
    if (this.#collected.length + chunk.length > this.#passage.limits.whole.bytes) return this.#refuseLarge()
    if (!this.#bounded && this.#take(chunk.length) === "stop") return "stop"
    this.#collected.add(chunk)
    return "continue"
  }

  /** Nothing is ever paused: the client takes no part yet. */
  onDrain(): void {}

  /** What is to be judged, of an answer that is whole; `undefined` where there is nothing. */
  text(): Result.Result<string, GatewayError> | undefined {
    if (!this.#isJson || this.#collected.length === 0) return undefined
    const bytes = this.#collected.toBuffer()
    if (JsonBounds.shapeOf(bytes).excess !== undefined) return Result.fail(jsonTooLarge)
    try {
      const text = utf8.decode(bytes)
      JSON.parse(text)
      return Result.succeed(text)
    } catch {
      return Result.fail(this.#notJson)
    }
  }

  /** For an answer that goes as it came, or did not come. */
  ended(exit: Exit.Exit<void, UpstreamError>, begun: boolean): Forward.PendingResponse {
    if (Exit.isSuccess(exit)) return this.released(undefined)
    const clientGone = Cause.hasInterrupts(exit.cause)
    if (clientGone)
      return this.#settleable({ clientDisconnected: clientGone, requestSent: begun, isComplete: false }, () =>
        this.#wire.abort()
      )
    return this.#kept(
      this.#refused ?? Forward.errorOf(exit, this.#cutBy, this.#passage, this.#passage.limits.whole),
      false
    )
  }

  /** The client gets `text`, or what the upstream sent. */
  released(text: string | undefined): Forward.PendingResponse {
    const clear = text === undefined ? this.#collected.toBuffer() : Buffer.from(text)
    // an exchange that came to its end has had a head
    const status = this.#status ?? 502
    const mask = SecretMask.forStatus(status, this.#passage.credential)
    const body = mask === undefined ? clear : Buffer.concat([mask.push(clear), mask.flush()])
    this.#passage.responseHash?.update(body)
    this.#passage.responseHash?.complete()
    return this.#settleable({ status, isComplete: true, headSent: true }, () => {
      this.#wire.head(status, this.#answerHeaders(status, body.length, mask))
      this.#wire.end(body.length === 0 ? undefined : body)
    })
  }

  /** The client gets none of it. */
  withheld(error: GatewayError): Forward.PendingResponse {
    return this.#kept(error, true)
  }

  #kept(error: GatewayError, whole: boolean): Forward.PendingResponse {
    const { mayFallBack } = this.#passage
    const withheld = this.#status ?? this.#declined
    const fallsBack =
      mayFallBack && (this.#declined !== undefined || (this.#status === undefined && Forward.isFallbackError(error)))
    return this.#settleable({ error, isComplete: whole, canFallBack: fallsBack, withheldStatus: withheld }, () => {})
  }

  #settleable(
    passed: Pick<Forward.ForwardResult, "isComplete"> & Partial<Forward.ForwardResult>,
    finish: () => void
  ): Forward.PendingResponse {
    // in one piece, which is held once for all who read it
    const answer = this.#collected.toBuffer()
    this.#tap.push(answer)
    this.#tap.flush()
    this.#passage.observer?.onChunk(answer)
    return {
      result: {
        status: undefined,
        headSent: false,
        error: undefined,
        cutBy: this.#cutBy,
        clientDisconnected: false,
        requestSent: true,
        canFallBack: false,
        observedUsage: this.#tap.observed(),
        firstByteAt: this.#firstByteAt,
        endedAt: this.#passage.now(),
        ...passed
      },
      finish
    }
  }

  #answerHeaders(status: number, length: number, mask: SecretMask | undefined): Headers.RawHeaders {
    const out = Headers.without(Forward.clientHeaders(this.#passage, this.#headers, mask), "content-length")
    if (Forward.statusAllowsBody(status)) out.push("content-length", String(length))
    return out
  }

  #refuse(error: GatewayError): Flow {
    this.#refused = error
    return "stop"
  }

  #take(room: number): Flow {
    const whose = this.#lease.grow(room)
    return whose === undefined ? "continue" : this.#refuse(BodyAdmission.refusal(whose, "answer"))
  }

  #refuseLarge(): Flow {
    this.#cutBy = "size"
    return "stop"
  }
}

const isPlainJson = (headers: Headers.RawHeaders): boolean =>
  (Headers.get(headers, "content-encoding") ?? "identity").toLowerCase() === "identity" &&
  /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/.test(Forward.contentTypeOf(headers))

const notJson = new GatewayError({
  code: "guardrail_unavailable",
  message: "The upstream's answer is not JSON, so the guardrails of this key cannot look at it, and it does not pass."
})

const jsonTooLarge = new GatewayError({
  code: "guardrail_unavailable",
  message:
    "The upstream's answer nests deeper, or holds more values, than the guardrails of this key can look at, and it does not pass."
})
