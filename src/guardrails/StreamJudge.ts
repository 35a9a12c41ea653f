import { Result } from "effect"
import type { Action, Config, Execution } from "../policy/Guardrail.ts"
import * as GuardrailOutcome from "./GuardrailOutcome.ts"
import type { SelectedGuardrail } from "./Selection.ts"
import type { StreamText } from "./stream/LaneTexts.ts"
import type { WindowText } from "./stream/TextWindows.ts"
import type { TextRoute } from "./text/Place.ts"

export type Reply = Result.Result<GuardrailOutcome.Verdict, GuardrailOutcome.GuardrailFailure>

/** Calls a guardrail with the JSON of a response, and calls `done` once. The returned function cancels a running call. */
export type StreamCall = (step: SelectedGuardrail, response: string, done: (reply: Reply) => void) => () => void

export interface HttpStreamOptions {
  readonly route: TextRoute
  readonly call: StreamCall
  readonly now: () => number
}

/** Makes the calls of one HTTP guardrail for one stream, and sums them up as one execution. */
export class StreamJudge {
  readonly #step: SelectedGuardrail
  readonly #call: StreamCall
  readonly #now: () => number
  #cancel: (() => void) | undefined
  #startedAt: number | undefined
  #calls = 0
  #tookMs = 0
  #longestMs = 0
  /** The outcome with the gravest action. */
  #outcome: GuardrailOutcome.GuardrailOutcome | undefined
  #hasFailed = false

  constructor(step: SelectedGuardrail, call: StreamCall, now: () => number) {
    this.#step = step
    this.#call = call
    this.#now = now
  }

  get isBusy(): boolean {
    return this.#startedAt !== undefined
  }

  get hasFailed(): boolean {
    return this.#hasFailed
  }

  /** Calls the guardrail. `check` may refuse its reply. `done` may be called before this method returns. */
  judge(
    texts: ReadonlyArray<StreamText | WindowText>,
    check: (verdict: GuardrailOutcome.Verdict) => Reply,
    done: (consequence: GuardrailOutcome.Consequence) => void
  ): void {
    this.#calls++
    this.#startedAt = this.#now()
    const cancel = this.#call(this.#step, JSON.stringify({ texts }), (reply) => {
      if (this.#startedAt === undefined) return
      this.#endCall()
      done(this.#note(GuardrailOutcome.of(this.#step.definition.failurePolicy, Result.flatMap(reply, check))))
    })
    if (this.isBusy) this.#cancel = cancel
    else cancel()
  }

  /** Applies the failure policy to a stream, or to a part of it, that the guardrail cannot judge. */
  fail(reason: string): GuardrailOutcome.Consequence {
    return this.#note({ ...GuardrailOutcome.of(this.#step.definition.failurePolicy, unavailable), reason })
  }

  cancel(): void {
    const cancel = this.#cancel
    if (!this.isBusy) return
    this.#endCall()
    cancel?.()
  }

  /** `isJudged` is false if the stream failed or the client left before the first call returned. */
  execution(isJudged: boolean, metadata: Config): Execution {
    const { failurePolicy, name } = this.#step.definition
    const outcome = this.#outcome ?? (isJudged ? allowed : notJudged)
    return {
      guardrail_name: name,
      mode: "during_call",
      action: outcome.action,
      failure_policy: failurePolicy,
      latency_ms: this.#tookMs,
      reason: outcome.reason,
      metadata: { ...outcome.metadata, calls: this.#calls, longest_call_ms: this.#longestMs, ...metadata }
    }
  }

  #endCall(): void {
    const took = this.#now() - (this.#startedAt ?? this.#now())
    this.#startedAt = undefined
    this.#tookMs += took
    this.#longestMs = Math.max(this.#longestMs, took)
    this.#cancel = undefined
  }

  #note(outcome: GuardrailOutcome.GuardrailOutcome): GuardrailOutcome.Consequence {
    if (outcome.failed) this.#hasFailed = true
    if (this.#outcome === undefined || gravity[outcome.action] > gravity[this.#outcome.action]) this.#outcome = outcome
    return outcome.consequence
  }
}

const unavailable: Reply = Result.fail({ code: "guardrail_unavailable" })

export const invalidReply: Reply = Result.fail({ code: "invalid_guardrail_request" })

const gravity: Readonly<Record<Action, number>> = { allow: 0, modify: 1, warn: 2, block: 3 }

type Summary = Pick<GuardrailOutcome.GuardrailOutcome, "action" | "reason" | "metadata">
const allowed: Summary = { action: "allow", reason: null, metadata: {} }
const notJudged: Summary = { action: "warn", reason: "not_judged", metadata: {} }
