import { Schema } from "effect"

/** The column `denial` of a usage record. */
export const StoredDenial = Schema.Struct({
  check: Schema.String,
  layer: Schema.optionalKey(Schema.NullOr(Schema.String)),
  amounts: Schema.optionalKey(Schema.Struct({ wanted: Schema.Finite, used: Schema.Finite, limit: Schema.Finite }))
})
