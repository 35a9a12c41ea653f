import { Schema } from "effect"
import { limitFields } from "../../../policy/SharedLimits.ts"
import { Id, Timestamp } from "../schema/Fields.ts"
import { AppliedRaise, NewLimitRaise, Sentence } from "./LimitRaises.ts"

/** A request for higher limits, in the words of whoever holds the key. */
export const NewRaiseRequest = Schema.Struct({
  reason: Sentence,
  /** The limit that is too low. */
  meter: Schema.optionalKey(Schema.Literals(limitFields)),
  /** How much of it would be enough, in requests, tokens or US dollars. Needs `meter`. */
  amount: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })))
})
export type NewRaiseRequest = typeof NewRaiseRequest.Type

const RaiseRequestState = Schema.Literals(["open", "granted", "refused"])

/** A request as its holder sees it, with the answer. */
export const HeldRaiseRequest = Schema.Struct({
  id: Id,
  state: RaiseRequestState,
  meter: Schema.NullOr(Schema.Literals(limitFields)),
  amount: Schema.NullOr(Schema.Finite),
  reason: Schema.String,
  created_at: Timestamp,
  answered_at: Schema.NullOr(Timestamp),
  /** What the operator says to the holder. */
  answer: Schema.NullOr(Schema.String),
  /** The exception that an operator made of it. */
  granted: Schema.NullOr(AppliedRaise)
}).annotate({ identifier: "HeldRaiseRequest" })
export type HeldRaiseRequest = typeof HeldRaiseRequest.Type

export const RaiseRequest = HeldRaiseRequest.pipe(
  Schema.fieldsAssign({
    key_id: Id,
    key_name: Schema.NullOr(Schema.String),
    key_prefix: Schema.String,
    owner_email: Schema.NullOr(Schema.String),
    /** The operator token that answered. */
    answered_by: Schema.NullOr(Id)
  })
).annotate({ identifier: "RaiseRequest" })
export type RaiseRequest = typeof RaiseRequest.Type

export const RaiseRequestQuery = Schema.Struct({
  state: Schema.optionalKey(RaiseRequestState),
  key_id: Schema.optionalKey(Id)
})

/** The exception that answers the request, and a sentence for the holder. */
export const GrantedRaise = NewLimitRaise.pipe(Schema.fieldsAssign({ answer: Schema.optionalKey(Sentence) }))
export type GrantedRaise = typeof GrantedRaise.Type

export const RefusedRaise = Schema.Struct({ answer: Sentence })
