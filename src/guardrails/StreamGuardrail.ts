import type { Execution } from "../policy/Guardrail.ts"
import type { StoppedBy } from "./GuardrailOutcome.ts"

/** Receives an event stream: the next guardrail, or the side of the client. */
export interface StreamReceiver {
  readonly push: (bytes: Buffer) => void
  /** The stream is complete. */
  readonly end: () => void
}

/** Where a guardrail sends what it leaves of a stream. */
export interface StreamOutlet extends StreamReceiver {
  /** Ends the stream. Nothing that is still held may be sent. */
  readonly stop: (by: StoppedBy) => void
  /** Called when the guardrail is no longer busy. */
  readonly ready: () => void
}

/** One guardrail on one event stream. It sends to its outlet at once, or later after a call. */
export interface StreamGuardrail extends StreamReceiver {
  /** True while a call decides about events that wait. The upstream should then send no more. */
  readonly isBusy: boolean
  /** Cancels a running call. The guardrail sends nothing afterwards. */
  readonly cancel: () => void
  /** Returns the bytes of a whole stream that was held and not sent. */
  readonly takeUnsent: () => Buffer
  readonly report: () => StreamReport
}

export interface StreamReport {
  readonly execution: Execution
  /** True if the guardrail did not reply, its reply was invalid, or it could not read the stream. */
  readonly hasFailed: boolean
}

export const noBytes = Buffer.alloc(0)
