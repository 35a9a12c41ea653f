import { Schema } from "effect"
import { LayerKind } from "../../../policy/PolicyLayer.ts"
import { Timestamp } from "../schema/Fields.ts"
import { Sentence } from "./LimitRaises.ts"

/** A limit counts the usage of one key, or that of all keys under a policy layer. */
export const CountedScope = Schema.Literals([...LayerKind.literals, "key"])

/** Limits of a minute are not among them: they begin anew sooner than somebody has asked for it. */
export const ResettableMeter = Schema.Literals([
  "max_requests_per_day",
  "max_tokens_per_day",
  "daily_budget_usd",
  "monthly_budget_usd"
])

export const NewLimitReset = Schema.Struct({
  scope: CountedScope,
  /** The id of the key, or what the layer is for. `null` for the global layer. */
  scope_id: Schema.NullOr(Schema.String.check(Schema.isBetweenLength(1, 256))),
  meter: ResettableMeter,
  reason: Sentence
})
export type NewLimitReset = typeof NewLimitReset.Type

export const LimitReset = Schema.Struct({
  ...NewLimitReset.fields,
  reason: Schema.String,
  window: Schema.Literals(["day", "month"]),
  /** The usage before, in requests, tokens or US dollars. */
  used_before: Schema.Finite,
  resets_at: Timestamp
}).annotate({ identifier: "LimitReset" })
export type LimitReset = typeof LimitReset.Type
