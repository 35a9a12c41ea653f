import { Result } from "effect"
import type { Execution } from "../policy/Guardrail.ts"
import { BufferedStream } from "./BufferedStream.ts"
import type { StoppedBy } from "./GuardrailOutcome.ts"
import { PiiStream } from "./PiiStream.ts"
import type { PlaceholderValues } from "./redact/Redaction.ts"
import type { SelectedGuardrail, Selection } from "./Selection.ts"
import type { StreamGuardrail, StreamOutlet, StreamReceiver } from "./StreamGuardrail.ts"
import type { HttpStreamOptions } from "./StreamJudge.ts"
import { WindowedStream } from "./WindowedStream.ts"

export interface StreamOptions extends HttpStreamOptions {
  /** The placeholders of the request, with the values that they replaced. */
  readonly known: PlaceholderValues
}

/** The guardrails of one event stream, in order. Each one receives what the previous one left. */
export class StreamChain implements StreamReceiver {
  readonly #guardrails: ReadonlyArray<StreamGuardrail>
  readonly #first: StreamReceiver
  readonly #output: StreamOutlet
  #isStopped = false

  constructor(steps: Selection, options: StreamOptions, output: StreamOutlet) {
    this.#output = output
    const guardrails: Array<StreamGuardrail> = []
    let next: StreamReceiver = output
    for (const step of steps.toReversed()) {
      const guardrail = guardrailOf(step, options, this.#outletTo(next))
      guardrails.unshift(guardrail)
      next = guardrail
    }
    this.#guardrails = guardrails
    this.#first = next
  }

  get isBusy(): boolean {
    return this.#guardrails.some(({ isBusy }) => isBusy)
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
    for (const guardrail of this.#guardrails) guardrail.cancel()
  }

  /** Returns the bytes that a guardrail held and did not send, because it holds the whole stream. */
  takeUnsent(): Buffer {
    return Buffer.concat(this.#guardrails.map((guardrail) => guardrail.takeUnsent()))
  }

  /** The executions of the guardrails that received any bytes. */
  report(): { readonly executions: ReadonlyArray<Execution>; readonly failures: ReadonlyArray<Execution> } {
    const ran = this.#guardrails
      .filter(({ hasStarted }) => hasStarted)
      .map((guardrail) => ({ execution: guardrail.execution(), hasFailed: guardrail.hasFailed }))
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

/** True if the guardrail passes nothing before the end of the stream was judged. */
export const holdsWholeStream = ({ definition: { provider } }: SelectedGuardrail): boolean =>
  provider._tag === "Http" && provider.streamMode === "buffer"

const guardrailOf = (step: SelectedGuardrail, options: StreamOptions, outlet: StreamOutlet): StreamGuardrail => {
  const { provider } = step.definition
  if (provider._tag === "BuiltIn") return new RedactedStream(new PiiStream(step, options), outlet)
  return holdsWholeStream(step)
    ? new BufferedStream(step, options, outlet)
    : new WindowedStream(step, provider.windowChars, options, outlet)
}

/** `pii-redact` decides without a call, so it is never busy. */
class RedactedStream implements StreamGuardrail {
  readonly isBusy = false
  readonly #stream: PiiStream
  readonly #outlet: StreamOutlet

  constructor(stream: PiiStream, outlet: StreamOutlet) {
    this.#stream = stream
    this.#outlet = outlet
  }

  get hasStarted(): boolean {
    return this.#stream.hasStarted
  }

  get hasFailed(): boolean {
    return this.#stream.hasFailed
  }

  push(bytes: Buffer): void {
    this.#pass(this.#stream.push(bytes))
  }

  end(): void {
    if (this.#pass(this.#stream.end(noBytes))) this.#outlet.end()
  }

  cancel(): void {}

  takeUnsent(): Buffer {
    return noBytes
  }

  execution(): Execution {
    return this.#stream.execution()
  }

  #pass(passed: Result.Result<Buffer, StoppedBy>): boolean {
    if (Result.isFailure(passed)) this.#outlet.stop(passed.failure)
    else if (passed.success.length > 0) this.#outlet.push(passed.success)
    return Result.isSuccess(passed)
  }
}

const noBytes = Buffer.alloc(0)
