import { Schema } from "effect"
import { KeyPolicy } from "../../../policy/KeyPolicy.ts"
import { limitFields } from "../../../policy/SharedLimits.ts"
import { ModelName } from "../providers/ModelPricesApi.ts"
import { Id, Timestamp } from "../schema/Fields.ts"
import { AppliedRaise, NewLimitRaise, Sentence } from "./LimitRaises.ts"

/** One model. A pattern would ask for more than people see at a glance. */
const AskedModel = ModelName.check(Schema.isPattern(/^[^*]*$/, { expected: 'the name of a model, without "*"' }))

/** A request for a higher limit or for a model, in the words of whoever holds the key. */
export const NewRaiseRequest = Schema.Struct({
  reason: Sentence,
  /** The limit that is too low. */
  meter: Schema.optionalKey(Schema.Literals(limitFields)),
  /** How much of it would be enough, in requests, tokens or US dollars. Needs `meter`. */
  amount: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))),
  /** The model that the key may not use. Not together with `meter`. */
  model: Schema.optionalKey(AskedModel)
})
export type NewRaiseRequest = typeof NewRaiseRequest.Type

const RaiseRequestState = Schema.Literals(["open", "granted", "refused"])

/** A request as its holder sees it, with the answer. */
export const HeldRaiseRequest = Schema.Struct({
  id: Id,
  state: RaiseRequestState,
  meter: Schema.NullOr(Schema.Literals(limitFields)),
  amount: Schema.NullOr(Schema.Finite),
  model: Schema.NullOr(Schema.String),
  reason: Schema.String,
  created_at: Timestamp,
  answered_at: Schema.NullOr(Timestamp),
  /** What the operator says to the holder. */
  answer: Schema.NullOr(Schema.String),
  /** The exception that an operator made of it. `null` also if a model was granted. */
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

/** A granted request for a model, with what the key's own policy allows now. */
export const GrantedModelRequest = RaiseRequest.pipe(
  Schema.fieldsAssign({ policy: Schema.Struct({ allowed_models: KeyPolicy.fields.allowed_models }) })
).annotate({ identifier: "GrantedModelRequest" })
export type GrantedModelRequest = typeof GrantedModelRequest.Type

/** A sentence for the holder. */
export const GrantedModel = Schema.Struct({ answer: Schema.optionalKey(Sentence) })
export type GrantedModel = typeof GrantedModel.Type

export const RefusedRaise = Schema.Struct({ answer: Sentence })
