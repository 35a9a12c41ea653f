import { Schema } from "effect"
import { LimitState } from "../limits/LimitsApi.ts"
import { Timestamp } from "../schema/Fields.ts"

/** The protocols of the tools that people use: chat of OpenAI's, its responses (Codex), and messages of Anthropic's. */
export const KeyTestProtocol = Schema.Literals(["chat", "responses", "messages"])
export type KeyTestProtocol = typeof KeyTestProtocol.Type

export const KeyTest = Schema.Struct({
  protocol: KeyTestProtocol,
  model: Schema.String.check(Schema.isBetweenLength(1, 256))
})
export type KeyTest = typeof KeyTest.Type

/** The answer tells what the gateway would do with a short request. */
export const KeyTestResult = Schema.Struct({
  allowed: Schema.Boolean,
  /** The code that the request would get. */
  error_code: Schema.NullOr(Schema.String),
  sentence: Schema.String,
  what_to_do: Schema.String,
  /** The limit that is used up, where that is the reason. */
  meter: Schema.NullOr(LimitState.fields.meter),
  /** When that limit begins anew. */
  resets_at: Schema.NullOr(Timestamp),
  /** The guardrails that would check the request. */
  guardrails: Schema.Array(Schema.String)
})
export type KeyTestResult = typeof KeyTestResult.Type

/** What happened to the secret of the key. Who did it is not shown. */
export const KeyHistoryEntry = Schema.Struct({
  at: Timestamp,
  action: Schema.Literals(["created", "rotated", "rotated_by_holder", "disabled", "enabled"])
})
export type KeyHistoryEntry = typeof KeyHistoryEntry.Type
