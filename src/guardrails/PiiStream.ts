import { Result } from "effect"
import { FirstTextDelay } from "./FirstTextDelay.ts"
import * as GuardrailOutcome from "./GuardrailOutcome.ts"
import { type StoppedBy, stoppedBy } from "./GuardrailOutcome.ts"
import * as PiiRedact from "./PiiRedact.ts"
import type { PlaceholderValues } from "./redact/Redaction.ts"
import type { SelectedGuardrail } from "./Selection.ts"
import { noBytes, type StreamGuardrail, type StreamOutlet, type StreamReport } from "./StreamGuardrail.ts"
import { EventTooLarge } from "./stream/SseEvents.ts"
import { StreamRedactor } from "./stream/StreamRedactor.ts"
import type { TextRoute } from "./text/Place.ts"

interface PiiStreamOptions {
  readonly route: TextRoute
  /** The placeholders of the request, with the values that they replaced. */
  readonly known: PlaceholderValues
  readonly now: () => number
}

/** `pii-redact` on one event stream. It decides without a call, so it is never busy. */
export class PiiStream implements StreamGuardrail {
  readonly isBusy = false
  readonly #step: SelectedGuardrail
  readonly #outlet: StreamOutlet
  readonly #now: () => number
  /** The failure is a configuration that cannot be read. */
  readonly #redactor: Result.Result<StreamRedactor, string>
  readonly #blocksUnreadable: boolean
  readonly #firstText: FirstTextDelay
  /** True after an event that was too large, if the failure policy lets the rest of the stream pass unread. */
  #isGivenUp = false
  #failure: "guardrail_unavailable" | "event_too_large" | undefined
  #tookMs = 0

  constructor(step: SelectedGuardrail, { known, now, route }: PiiStreamOptions, outlet: StreamOutlet) {
    this.#step = step
    this.#outlet = outlet
    this.#now = now
    this.#firstText = new FirstTextDelay(now)
    this.#blocksUnreadable = PiiRedact.blocksUnreadable(step.config, step.definition.failurePolicy)
    this.#redactor = Result.map(
      PiiRedact.redactionOf("response", { config: step.config, route, known }),
      (redaction) => new StreamRedactor(redaction, route)
    )
    if (Result.isFailure(this.#redactor)) this.#failure = "guardrail_unavailable"
  }

  push(bytes: Buffer): void {
    this.#send(bytes, (redactor) => redactor.push(bytes))
  }

  end(): void {
    if (this.#send(noBytes, (redactor) => redactor.end())) this.#outlet.end()
  }

  /** No call is running, and the chain passes on nothing that is sent afterwards. */
  cancel(): void {}

  takeUnsent(): Buffer {
    return noBytes
  }

  report(): StreamReport {
    const { definition } = this.#step
    const outcome = GuardrailOutcome.of(definition.failurePolicy, this.#verdict())
    const summary = { ...outcome, reason: this.#failure ?? outcome.reason }
    return {
      execution: GuardrailOutcome.executionOf(definition, "during_call", summary, this.#tookMs),
      hasFailed: this.#failure !== undefined
    }
  }

  /** Returns false if the stream stops here. */
  #send(bytes: Buffer, redact: (redactor: StreamRedactor) => string): boolean {
    const startedAt = this.#now()
    const passed = this.#pass(bytes, redact)
    this.#tookMs += this.#now() - startedAt
    if (Result.isFailure(passed)) this.#outlet.stop(passed.failure)
    else if (passed.success.length > 0) this.#outlet.push(passed.success)
    return Result.isSuccess(passed)
  }

  #pass(bytes: Buffer, redact: (redactor: StreamRedactor) => string): Result.Result<Buffer, StoppedBy> {
    const { failurePolicy, name } = this.#step.definition
    const unavailable = () => Result.fail(stoppedBy("guardrail_unavailable", name))
    if (Result.isFailure(this.#redactor)) return failurePolicy === "fail_closed" ? unavailable() : Result.succeed(bytes)
    const redactor = this.#redactor.success
    const isDryRun = failurePolicy === "dry_run"
    const passed = (text: string) => Result.succeed(isDryRun ? bytes : Buffer.from(text))
    if (this.#isGivenUp) return passed(redactor.passUnread(bytes))
    try {
      const redacted = redact(redactor)
      if (redactor.hasText) this.#firstText.arrived()
      if (this.#blocksUnreadable && !isDryRun && redactor.hasUnreadable) {
        return Result.fail(stoppedBy("guardrail_blocked", name))
      }
      if (redactor.hasSentText || isDryRun) this.#firstText.sent()
      return passed(redacted)
    } catch (error) {
      if (!(error instanceof EventTooLarge)) throw error
      this.#failure = "event_too_large"
      if (failurePolicy === "fail_closed") return unavailable()
      this.#isGivenUp = true
      return passed(redactor.giveUp())
    }
  }

  #verdict(): Result.Result<GuardrailOutcome.Verdict, GuardrailOutcome.GuardrailFailure> {
    if (Result.isFailure(this.#redactor) || this.#failure !== undefined) {
      return Result.fail({ code: "guardrail_unavailable" })
    }
    const { maxHeld, redaction, unreadable } = this.#redactor.success
    const { config, definition } = this.#step
    const verdict = PiiRedact.verdictOf(redaction, unreadable, config, definition.failurePolicy)
    const metadata = { ...verdict.metadata, held_characters: maxHeld, ...this.#firstText.metadata }
    return Result.succeed({ ...verdict, metadata })
  }
}
