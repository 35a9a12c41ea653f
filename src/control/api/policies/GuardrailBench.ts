import { Schema } from "effect"
import { Action, Config, Execution } from "../../../policy/Guardrail.ts"
import { Timestamp } from "../schema/Fields.ts"

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
