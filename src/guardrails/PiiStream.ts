import { Result } from "effect"
import type { Execution } from "../policy/Guardrail.ts"
import * as GuardrailOutcome from "./GuardrailOutcome.ts"
import { type StoppedBy, stoppedBy } from "./GuardrailOutcome.ts"
import * as PiiRedact from "./PiiRedact.ts"
import type { PlaceholderValues, Redaction } from "./redact/Redaction.ts"
import type { SelectedGuardrail } from "./Selection.ts"
import { EventTooLarge } from "./stream/SseEvents.ts"
import { StreamRedactor } from "./stream/StreamRedactor.ts"
import type { TextRoute } from "./text/Place.ts"

interface StreamOptions {
  readonly route: TextRoute
  /** The placeholders of the request, with the values that they replaced. */
  readonly known: PlaceholderValues
  readonly now: () => number
}

/** One run of `pii-redact` on an event stream. */
export class PiiStream {
  readonly #step: SelectedGuardrail
  readonly #now: () => number
  readonly #redaction: Redaction | undefined
  readonly #redactor: StreamRedactor | undefined
  readonly #blocksUnreadable: boolean
  #hasStarted = false
  /** True if the rest of the stream passes unread, because the guardrail failed and its failure policy lets it pass. */
  #isGivenUp = false
  #failure: string | undefined
  #tookMs = 0

  constructor(step: SelectedGuardrail, { known, now, route }: StreamOptions) {
    this.#step = step
    this.#now = now
    this.#blocksUnreadable = PiiRedact.blocksUnreadable(step.config, step.definition.failurePolicy)
    this.#redaction = Result.getOrUndefined(PiiRedact.redactionOf("response", { config: step.config, route, known }))
    this.#redactor = this.#redaction && new StreamRedactor(this.#redaction, route)
    if (this.#redactor === undefined) this.#failure = "guardrail_unavailable"
  }

  /** False until the first bytes arrive: the response may be no stream at all. */
  get hasStarted(): boolean {
    return this.#hasStarted
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  /** Returns the bytes to send now, or why the stream ends here. */
  push(bytes: Buffer): Result.Result<Buffer, StoppedBy> {
    return this.#timed(bytes, (redactor) => redactor.push(bytes))
  }

  /** Returns the last bytes. `bytes` are the last ones that arrived. */
  end(bytes: Buffer): Result.Result<Buffer, StoppedBy> {
    return this.#timed(bytes, (redactor) => redactor.push(bytes) + redactor.end())
  }

  execution(): Execution {
    const { definition } = this.#step
    const verdict =
      this.#redaction === undefined || this.#failure !== undefined
        ? Result.fail({ code: "guardrail_unavailable" } as const)
        : Result.succeed(this.#verdict(this.#redaction))
    const { action, metadata, reason } = GuardrailOutcome.of(definition.failurePolicy, verdict)
    return {
      guardrail_name: definition.name,
      mode: "during_call",
      action,
      failure_policy: definition.failurePolicy,
      latency_ms: this.#tookMs,
      reason: this.#failure ?? reason,
      metadata
    }
  }

  #timed(bytes: Buffer, run: (redactor: StreamRedactor) => string): Result.Result<Buffer, StoppedBy> {
    this.#hasStarted = true
    const startedAt = this.#now()
    const passed = this.#pass(bytes, run)
    this.#tookMs += this.#now() - startedAt
    return passed
  }

  #pass(bytes: Buffer, run: (redactor: StreamRedactor) => string): Result.Result<Buffer, StoppedBy> {
    const { failurePolicy, name } = this.#step.definition
    const redactor = this.#redactor
    if (this.#isGivenUp) return Result.succeed(bytes)
    if (redactor === undefined || this.#redaction === undefined) {
      this.#isGivenUp = failurePolicy !== "fail_closed"
      return this.#isGivenUp ? Result.succeed(bytes) : Result.fail(stoppedBy("guardrail_unavailable", name))
    }
    try {
      const redacted = run(redactor)
      if (this.#blocksUnreadable && hasUnreadable(redactor, this.#redaction) && failurePolicy !== "dry_run") {
        return Result.fail(stoppedBy("guardrail_blocked", name))
      }
      return Result.succeed(failurePolicy === "dry_run" ? bytes : Buffer.from(redacted))
    } catch (error) {
      if (!(error instanceof EventTooLarge)) throw error
      this.#failure = "event_too_large"
      if (failurePolicy === "fail_closed") return Result.fail(stoppedBy("guardrail_unavailable", name))
      this.#isGivenUp = true
      return Result.succeed(failurePolicy === "dry_run" ? bytes : Buffer.from(redactor.giveUp()))
    }
  }

  #verdict(redaction: Redaction): GuardrailOutcome.Verdict {
    const { config, definition } = this.#step
    const unreadable = this.#redactor?.unreadable ?? new Set()
    const verdict = PiiRedact.verdictOf(redaction, unreadable, config, definition.failurePolicy)
    return { ...verdict, metadata: { ...verdict.metadata, held_characters: this.#redactor?.maxHeld ?? 0 } }
  }
}

const hasUnreadable = (redactor: StreamRedactor, redaction: Redaction): boolean =>
  redactor.unreadable.size > 0 || redaction.signedFindings > 0
