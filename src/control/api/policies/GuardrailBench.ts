import { Schema, Struct } from "effect"
import { Action, Config, Execution } from "../../../policy/Guardrail.ts"
import { Cursor, Id, PageLimit, Timestamp } from "../schema/Fields.ts"

const maxChunks = 1000
const maxChunkLength = 4096

/** What an operator tries out on one guardrail. At least one of `request`, `response` and `chunks` is there. */
export const GuardrailTrial = Schema.Struct({
  /** The body of a request, such as `{"messages":[{"role":"user","content":"…"}]}`. */
  request: Schema.optionalKey(Schema.Json),
  /** The body of its response. Placeholders of the request are restored in it, where the guardrail does so. */
  response: Schema.optionalKey(Schema.Json),
  /** The pieces of a streamed response's text. */
  chunks: Schema.optionalKey(
    Schema.Array(Schema.String.check(Schema.isMaxLength(maxChunkLength))).check(Schema.isMaxLength(maxChunks))
  ),
  /** Tried instead of the stored `runtime_config`. Nothing is stored. */
  runtime_config: Schema.optionalKey(Config)
})
export type GuardrailTrial = typeof GuardrailTrial.Type

const Stopped = Schema.NullOr(Schema.Struct({ code: Schema.String, message: Schema.String }))

/** `body` is what is sent on; `null` if the guardrail stops it. */
export const TriedBody = Schema.Struct({
  body: Schema.NullOr(Schema.Json),
  stopped: Stopped,
  results: Schema.Array(Execution)
})

/** `sent` is what the client gets after each chunk. One more item has what follows at the end. */
export const TriedStream = Schema.Struct({
  sent: Schema.Array(Schema.String),
  stopped: Stopped,
  results: Schema.Array(Execution)
})

/** The parts that were not tried are `null`. */
export const GuardrailTrialResult = Schema.Struct({
  request: Schema.NullOr(TriedBody),
  response: Schema.NullOr(TriedBody),
  stream: Schema.NullOr(TriedStream),
  /** The placeholders of the request, with the values that they replace. */
  placeholders: Schema.Record(Schema.String, Schema.String)
})
export type GuardrailTrialResult = typeof GuardrailTrialResult.Type

/** How a policy selects a guardrail. `configured`: the policy has a configuration of its own for it. */
export const GuardrailSelection = Schema.Literals(["mandatory", "optional", "forbidden", "configured"])
export type GuardrailSelection = typeof GuardrailSelection.Type

const Counted = Schema.Int

const outcomes = {
  /** Every request passes the guardrail, because a policy demands it. */
  mandatory: Counted,
  /** Every request passes the guardrail, because it is on by default. */
  by_default: Counted,
  /** A request may ask for the guardrail. */
  optional: Counted,
  /** A policy forbids the guardrail, and requests pass without it. */
  forbidden: Counted,
  /**
   * The requests are refused: one policy demands the guardrail and one forbids it, one and the same configures and forbids
   * it, or it is demanded and disabled.
   */
  refused: Counted,
  none: Counted
}

/** What becomes of the requests of a key. */
export const CoverageOutcome = Schema.Literals(Struct.keys(outcomes))
export type CoverageOutcome = typeof CoverageOutcome.Type

/**
 * How many usable keys get a guardrail, by their own policies and the layers of their project and team. Layers of a route
 * or model concern some of a key's requests only, so they are listed and not counted.
 */
export const GuardrailCoverage = Schema.Struct({
  keys: Schema.Struct(outcomes),
  /** The layers in force that name the guardrail. */
  layers: Schema.Array(
    Schema.Struct({
      id: Id,
      kind: Schema.String,
      scope_id: Schema.NullOr(Schema.String),
      /** The name of the project; otherwise `scope_id`. */
      scope_name: Schema.NullOr(Schema.String),
      selections: Schema.Array(GuardrailSelection)
    })
  )
})
export type GuardrailCoverage = typeof GuardrailCoverage.Type

export const CoveredKeysQuery = Schema.Struct({
  /** Without it the list has all usable keys. */
  outcome: Schema.optionalKey(CoverageOutcome),
  limit: Schema.optionalKey(PageLimit),
  cursor: Schema.optionalKey(Cursor)
})
export type CoveredKeysQuery = typeof CoveredKeysQuery.Type

export const CoveredKey = Schema.Struct({
  id: Id,
  name: Schema.NullOr(Schema.String),
  key_prefix: Schema.String,
  project_id: Schema.NullOr(Id),
  project_name: Schema.NullOr(Schema.String),
  team_id: Schema.NullOr(Schema.String),
  outcome: CoverageOutcome,
  /** What the key's own policy says of the guardrail. Empty if it does not name it. */
  selections: Schema.Array(GuardrailSelection)
})
export type CoveredKey = typeof CoveredKey.Type

export const ExecutionInterval = Schema.Literals(["minute", "hour", "day"])
export type ExecutionInterval = typeof ExecutionInterval.Type

export const ExecutionBucket = Schema.Struct({
  bucket: Timestamp,
  action: Action,
  count: Schema.Int,
  total_latency_ms: Schema.Int,
  max_latency_ms: Schema.Int
})
export type ExecutionBucket = typeof ExecutionBucket.Type
