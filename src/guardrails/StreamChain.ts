import type { Execution } from "../policy/Guardrail.ts"
import { BufferedStream } from "./BufferedStream.ts"
import type { StoppedBy } from "./GuardrailOutcome.ts"
import { PiiStream } from "./PiiStream.ts"
import type { PlaceholderValues } from "./redact/Redaction.ts"
import { isHttp, type SelectedGuardrail, type Selection } from "./Selection.ts"
import type { StreamGuardrail, StreamOutlet, StreamReceiver } from "./StreamGuardrail.ts"
import type { HttpStreamOptions } from "./StreamJudge.ts"
import { WindowedStream } from "./WindowedStream.ts"

export interface StreamOptions extends HttpStreamOptions {
  /** The placeholders of the request, with the values that they replaced. */
  readonly known: PlaceholderValues
}

/** The guardrails of one event stream, in order. Each one receives what the previous one left. */
export class StreamChain implements StreamReceiver {
  readonly #links: ReadonlyArray<Link>
  readonly #first: StreamReceiver
  readonly #output: StreamOutlet
  #isStopped = false

  constructor(steps: Selection, options: StreamOptions, output: StreamOutlet) {
    this.#output = output
    const links: Array<Link> = []
    let next: StreamReceiver = output
    for (const step of steps.toReversed()) {
      const link = new Link(guardrailOf(step, options, this.#outletTo(next)))
      links.unshift(link)
      next = link
    }
    this.#links = links
    this.#first = next
  }

  get isBusy(): boolean {
    return this.#links.some(({ guardrail }) => guardrail.isBusy)
  }

  push(bytes: Buffer): void {
    if (!this.#isStopped) this.#first.push(bytes)
  }

  end(): void {
    if (!this.#isStopped) this.#first.end()
  }

  /** Cancels running calls. Nothing is sent afterwards. */
  cancel(): void {
    this.#isStopped = true
    for (const { guardrail } of this.#links) guardrail.cancel()
  }

  /** Returns the bytes that a guardrail held and did not send, because it holds the whole stream. */
  takeUnsent(): Buffer {
    return Buffer.concat(this.#links.map(({ guardrail }) => guardrail.takeUnsent()))
  }

  /** The executions of the guardrails that received any bytes. */
  report(): { readonly executions: ReadonlyArray<Execution>; readonly failures: ReadonlyArray<Execution> } {
    const ran = this.#links.filter(({ hasStarted }) => hasStarted).map(({ guardrail }) => guardrail.report())
    return {
      executions: ran.map(({ execution }) => execution),
      failures: ran.filter(({ hasFailed }) => hasFailed).map(({ execution }) => execution)
    }
  }

  #outletTo(next: StreamReceiver): StreamOutlet {
    return {
      push: (bytes) => {
        if (!this.#isStopped) next.push(bytes)
      },
      end: () => {
        if (!this.#isStopped) next.end()
      },
      stop: (by) => this.#stop(by),
      ready: () => {
        if (!this.#isStopped && !this.isBusy) this.#output.ready()
      }
    }
  }

  #stop(by: StoppedBy): void {
    if (this.#isStopped) return
    this.cancel()
    this.#output.stop(by)
  }
}

/** A guardrail of the chain. The response may be no stream at all, so whether any bytes arrived is noted. */
class Link implements StreamReceiver {
  readonly guardrail: StreamGuardrail
  hasStarted = false

  constructor(guardrail: StreamGuardrail) {
    this.guardrail = guardrail
  }

  push(bytes: Buffer): void {
    this.hasStarted = true
    this.guardrail.push(bytes)
  }

  end(): void {
    this.guardrail.end()
  }
}

/** True if the guardrail passes nothing before the end of the stream was judged. */
export const holdsWholeStream = (step: SelectedGuardrail): boolean =>
  isHttp(step) && step.definition.provider.streamMode === "buffer"

const guardrailOf = (step: SelectedGuardrail, options: StreamOptions, outlet: StreamOutlet): StreamGuardrail => {
  if (!isHttp(step)) return new PiiStream(step, options, outlet)
  return holdsWholeStream(step) ? new BufferedStream(step, options, outlet) : new WindowedStream(step, options, outlet)
}
