import { Schema } from "effect"
import { LimitState } from "../limits/LimitsApi.ts"
import { Timestamp } from "../schema/Fields.ts"

/** The protocols of the tools that people use: chat of OpenAI's, its responses (Codex), and messages of Anthropic's. */
export const KeyTestProtocol = Schema.Literals(["chat", "responses", "messages"])
export type KeyTestProtocol = typeof KeyTestProtocol.Type

export const KeyTest = Schema.Struct({
  protocol: KeyTestProtocol,
  model: Schema.String.check(Schema.isBetweenLength(1, 256)),
  /** Also sends the smallest request of the protocol, if the gateway would let the short one through. Default: `false`. */
  send: Schema.optionalKey(Schema.Boolean)
})
export type KeyTest = typeof KeyTest.Type

const Words = { sentence: Schema.String, what_to_do: Schema.String }

/** The outcome of the request that was sent. The request is recorded as one of the key's. */
export const SentKeyTest = Schema.Struct({
  /**
   * `works`: the model answered. `refused_by_gateway` and `refused_by_provider` had another status than 2xx. `unreadable`:
   * an answer came, and it is none of a model. `unreachable`: no answer came. `timeout`: none came in time.
   */
  outcome: Schema.Literals([
    "works",
    "refused_by_gateway",
    "refused_by_provider",
    "unreadable",
    "unreachable",
    "timeout"
  ]),
  ...Words,
  status_code: Schema.NullOr(Schema.Int),
  /** The gateway's code, if it refused the request. */
  error_code: Schema.NullOr(Schema.String),
  /** The words of a refusal by the model provider, at most 500 characters. Nobody has verified them. */
  provider_message: Schema.NullOr(Schema.String),
  input_tokens: Schema.NullOr(Schema.Int),
  output_tokens: Schema.NullOr(Schema.Int),
  /** By the price of the model. `null`: the model has no price, or the answer no tokens. */
  cost_usd: Schema.NullOr(Schema.Finite),
  latency_ms: Schema.Int,
  /** The id of the request in `me/requests`. */
  request_id: Schema.String
})
export type SentKeyTest = typeof SentKeyTest.Type

/** The answer tells what the gateway would do with a short request and, if it was sent, what became of it. */
export const KeyTestResult = Schema.Struct({
  allowed: Schema.Boolean,
  /** The code that the request would get. */
  error_code: Schema.NullOr(Schema.String),
  ...Words,
  /** The limit that is used up, where that is the reason. */
  meter: Schema.NullOr(LimitState.fields.meter),
  /** The model, if the policy refuses it. */
  refused_model: Schema.NullOr(Schema.String),
  /** When that limit begins anew. */
  resets_at: Schema.NullOr(Timestamp),
  /** The guardrails that would check the request. */
  guardrails: Schema.Array(Schema.String),
  /** `null`: nothing was sent. */
  sent: Schema.NullOr(SentKeyTest),
  /** Why a request that would get through was not sent. `null` if it was sent, or was not to be. */
  not_sent: Schema.NullOr(Schema.Struct(Words))
})
export type KeyTestResult = typeof KeyTestResult.Type

/** What happened to the secret of the key. Who did it is not shown. */
export const KeyHistoryEntry = Schema.Struct({
  at: Timestamp,
  action: Schema.Literals(["created", "rotated", "rotated_by_holder", "disabled", "enabled"])
})
export type KeyHistoryEntry = typeof KeyHistoryEntry.Type
