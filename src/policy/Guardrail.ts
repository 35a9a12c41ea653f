import { Schema } from "effect"

export const Mode = Schema.Literals(["pre_call", "post_call", "during_call"])
export type Mode = typeof Mode.Type

export const Action = Schema.Literals(["allow", "block", "modify", "warn"])
export type Action = typeof Action.Type

/** If a guardrail fails, `fail_open` lets the text pass. `dry_run` only records each action, even without a failure. */
export const FailurePolicy = Schema.Literals(["fail_closed", "fail_open", "dry_run"])
export type FailurePolicy = typeof FailurePolicy.Type

/**
 * How an HTTP guardrail judges an event stream. `buffer` judges all texts before the first event is sent. `window` judges
 * each text in pieces and sends the events of judged pieces.
 */
export const StreamMode = Schema.Literals(["buffer", "window"])
export type StreamMode = typeof StreamMode.Type

/** The number of characters that a guardrail judges at a time in the stream mode `window`. */
export const WindowChars = Schema.Int.check(Schema.isBetween({ minimum: 64, maximum: 16_384 }))

export const Config = Schema.Record(Schema.String, Schema.Json)
export type Config = typeof Config.Type

/** One run of a guardrail, as stored and shown to operators. It never contains the checked text. */
export const Execution = Schema.Struct({
  guardrail_name: Schema.String,
  mode: Mode,
  action: Action,
  failure_policy: FailurePolicy,
  latency_ms: Schema.Int,
  reason: Schema.NullOr(Schema.String),
  metadata: Config
})
export type Execution = typeof Execution.Type
