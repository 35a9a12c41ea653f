import type { Exit } from "effect"
import * as Headers from "../../http/Headers.ts"
import type { Flow, Upstream, UpstreamError } from "../../services/Upstream.ts"
import type { Wire } from "../request/Wire.ts"
import { BufferedResponse, type ResponseInspector } from "./BufferedResponse.ts"
import * as Forward from "./Forward.ts"
import { StreamedResponse } from "./StreamedResponse.ts"

/**
 * Like `StreamedResponse.send`, but no byte of the response passes unseen: an event stream passes through the filter of `options`,
 * and another response is buffered and inspected.
 */
export const send = (
  upstream: Upstream["Service"],
  wire: Wire,
  options: Forward.ForwardOptions,
  inspector: ResponseInspector,
  done: (response: Forward.PendingResponse) => void,
  onDefect: (defect: unknown) => void
): (() => void) =>
  Forward.exchange(
    upstream,
    options.exchange,
    (stop) => new GuardedResponse(wire, options, inspector, stop),
    done,
    onDefect
  )

/** The headers of the response decide which of the two sinks takes it. */
class GuardedResponse implements Forward.ResponseSink {
  readonly #streamed: StreamedResponse
  readonly #buffered: BufferedResponse
  #chosen: Forward.ResponseSink

  constructor(wire: Wire, options: Forward.ForwardOptions, inspector: ResponseInspector, stop: () => void) {
    this.#streamed = new StreamedResponse(wire, options, stop)
    this.#buffered = new BufferedResponse(wire, options, inspector)
    this.#chosen = this.#buffered
  }

  head(status: number, headers: Headers.RawHeaders): Flow {
    if (Headers.isEventStream(headers)) this.#chosen = this.#streamed
    return this.#chosen.head(status, headers)
  }

  chunk(bytes: Uint8Array): Flow {
    return this.#chosen.chunk(bytes)
  }

  onDrain(resume: () => void): void {
    this.#chosen.onDrain(resume)
  }

  ended(
    exit: Exit.Exit<void, UpstreamError>,
    requestSent: boolean,
    done: (response: Forward.PendingResponse) => void
  ): void {
    this.#chosen.ended(exit, requestSent, done)
  }

  cancel(): void {
    this.#chosen.cancel?.()
  }
}
