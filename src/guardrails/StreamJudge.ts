import { Result } from "effect"
import type { Action, Config } from "../policy/Guardrail.ts"
import * as GuardrailOutcome from "./GuardrailOutcome.ts"
import type { HttpStep } from "./Selection.ts"
import type { StreamOutlet, StreamReport } from "./StreamGuardrail.ts"
import type { StreamText } from "./stream/LaneTexts.ts"
import type { WindowText } from "./stream/TextWindows.ts"
import type { TextRoute } from "./text/Place.ts"

export type Reply = Result.Result<GuardrailOutcome.Verdict, GuardrailOutcome.GuardrailFailure>

/** Calls a guardrail with the JSON of a response, and calls `done` once. The returned function cancels a running call. */
export type StreamCall = (step: HttpStep, response: string, done: (reply: Reply) => void) => () => void

export interface HttpStreamOptions {
  readonly route: TextRoute
  readonly call: StreamCall
  readonly now: () => number
}

/** The consequence for a stream, or a part of it, that goes on. */
export type Passing = Exclude<GuardrailOutcome.Consequence, { readonly _tag: "Stops" }>

interface RunningCall {
  readonly startedAt: number
  cancel: () => void
}

/** Makes the calls of one HTTP guardrail for one stream, and stops the stream if it may not pass. */
export class StreamJudge {
  readonly #step: HttpStep
  readonly #call: StreamCall
  readonly #now: () => number
  readonly #stop: StreamOutlet["stop"]
  #isStopped = false
  #running: RunningCall | undefined
  #calls = 0
  #tookMs = 0
  #longestMs = 0
  /** The outcome with the gravest action. */
  #outcome: GuardrailOutcome.GuardrailOutcome | undefined
  #hasFailed = false

  constructor(step: HttpStep, { call, now }: HttpStreamOptions, { stop }: StreamOutlet) {
    this.#step = step
    this.#call = call
    this.#now = now
    this.#stop = stop
  }

  get isBusy(): boolean {
    return this.#running !== undefined
  }

  /** True after `cancel`, and when the stream may not pass. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /**
   * Calls the guardrail. `check` may refuse its reply. `pass` is called unless the reply stops the stream, possibly before
   * this method returns.
   */
  judge(
    texts: ReadonlyArray<StreamText | WindowText>,
    check: (verdict: GuardrailOutcome.Verdict) => Reply,
    pass: (consequence: Passing) => void
  ): void {
    this.#calls++
    const running: RunningCall = { startedAt: this.#now(), cancel: () => {} }
    this.#running = running
    const cancel = this.#call(this.#step, JSON.stringify({ texts }), (reply) => {
      if (this.#running !== running) return
      this.#endCall(running.startedAt)
      const outcome = GuardrailOutcome.of(this.#step.definition.failurePolicy, Result.flatMap(reply, check))
      const passing = this.#passing(outcome)
      if (passing !== undefined) pass(passing)
    })
    // The client may have left while the call began.
    if (this.#running === running) running.cancel = cancel
    else cancel()
  }

  /**
   * Applies the failure policy to a stream, or to a part of it, that the guardrail cannot judge. Returns false if that
   * stops the stream.
   */
  fail(reason: string): boolean {
    const outcome = GuardrailOutcome.of(this.#step.definition.failurePolicy, unavailable)
    return this.#passing({ ...outcome, reason }) !== undefined
  }

  cancel(): void {
    this.#isStopped = true
    const running = this.#running
    if (running === undefined) return
    this.#endCall(running.startedAt)
    running.cancel()
  }

  /** `isJudged` is false if the stream failed or the client left before the first call returned. */
  report(isJudged: boolean, metadata: Config): StreamReport {
    const outcome = this.#outcome ?? (isJudged ? allowed : notJudged)
    const calls = { calls: this.#calls, longest_call_ms: this.#longestMs }
    const summary = { ...outcome, metadata: { ...outcome.metadata, ...calls, ...metadata } }
    return {
      execution: GuardrailOutcome.executionOf(this.#step.definition, "during_call", summary, this.#tookMs),
      hasFailed: this.#hasFailed
    }
  }

  #endCall(startedAt: number): void {
    const took = this.#now() - startedAt
    this.#running = undefined
    this.#tookMs += took
    this.#longestMs = Math.max(this.#longestMs, took)
  }

  #passing(outcome: GuardrailOutcome.GuardrailOutcome): Passing | undefined {
    if (outcome.failed) this.#hasFailed = true
    if (this.#outcome === undefined || gravity[outcome.action] > gravity[this.#outcome.action]) this.#outcome = outcome
    if (this.#isStopped) return undefined
    const { consequence } = outcome
    if (consequence._tag !== "Stops") return consequence
    this.#isStopped = true
    this.#stop(GuardrailOutcome.stoppedBy(consequence.code, this.#step.definition.name))
    return undefined
  }
}

const unavailable: Reply = Result.fail({ code: "guardrail_unavailable" })

export const invalidReply: Reply = Result.fail({ code: "invalid_guardrail_request" })

const gravity: Readonly<Record<Action, number>> = { allow: 0, modify: 1, warn: 2, block: 3 }

type Summary = Pick<GuardrailOutcome.GuardrailOutcome, "action" | "reason" | "metadata">
const allowed: Summary = { action: "allow", reason: null, metadata: {} }
const notJudged: Summary = { action: "warn", reason: "not_judged", metadata: {} }
