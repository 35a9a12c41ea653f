import { Schema } from "effect"
import { Id, Timestamp } from "../schema/Fields.ts"

const Count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))
const Dollars = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 9_000_000 }))

/** The raised limits. A limit that is absent stays as it is. */
const RaisedLimits = Schema.Struct({
  rpm_limit: Schema.optionalKey(Count),
  tpm_limit: Schema.optionalKey(Count),
  max_requests_per_day: Schema.optionalKey(Count),
  max_tokens_per_day: Schema.optionalKey(Count),
  daily_budget_usd: Schema.optionalKey(Dollars),
  monthly_budget_usd: Schema.optionalKey(Dollars)
})

export const maxRaiseDays = 31

/** What people say to each other about limits. */
export const Sentence = Schema.String.check(
  Schema.isPattern(/^[^\p{Cc}]{1,500}$/u, { expected: "1 to 500 characters, and no control characters" })
)

export const NewLimitRaise = Schema.Struct({
  ...RaisedLimits.fields,
  /** At this time the former limits are back. At most 31 days ahead. */
  until: Timestamp,
  reason: Sentence
})
export type NewLimitRaise = typeof NewLimitRaise.Type

/** An exception that names a request or a key. */
export const AppliedRaise = Schema.Struct({ id: Id, limits: RaisedLimits, until: Timestamp })
export type AppliedRaise = typeof AppliedRaise.Type

export const LimitRaise = Schema.Struct({
  ...AppliedRaise.fields,
  key_id: Id,
  reason: Schema.String,
  created_at: Timestamp,
  /** The operator token that made the exception. */
  created_by: Schema.NullOr(Id),
  /** When an operator ended the exception before its time. */
  ended_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "LimitRaise" })
export type LimitRaise = typeof LimitRaise.Type
