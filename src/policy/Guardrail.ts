import { Schema } from "effect"

/** When a guardrail looks: at the request, at the whole answer, at an answer while it streams. */
export const Mode = Schema.Literals(["pre_call", "post_call", "during_call"])
export type Mode = typeof Mode.Type

/** What a guardrail does: nothing, refuse, change the text, or note something and let it pass. */
export const Action = Schema.Literals(["allow", "block", "modify", "warn"])
export type Action = typeof Action.Type

/**
 * What becomes of a guardrail's failure. `fail_closed`: the request fails with it. `fail_open`: it is noted, and the
 * request goes on. `dry_run`: whatever the guardrail says is only noted.
 */
export const FailurePolicy = Schema.Literals(["fail_closed", "fail_open", "dry_run"])
export type FailurePolicy = typeof FailurePolicy.Type

export const Config = Schema.Record(Schema.String, Schema.Json)
export type Config = typeof Config.Type

/** One run of one guardrail, as it is kept and shown: nothing of the text that it looked at. */
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
