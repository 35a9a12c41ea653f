import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { refusals } from "./Errors.ts"
import { Id, stamps, Timestamp } from "./Fields.ts"
import { requires, Scope } from "./Security.ts"

/** What may be shown of a token: never more of the secret than its first characters. */
export const OperatorToken = Schema.Struct({
  id: Id,
  token_prefix: Schema.String,
  roles: Schema.Array(Schema.String),
  scopes: Schema.Array(Scope),
  disabled: Schema.Boolean,
  revoked_at: Schema.NullOr(Timestamp),
  last_used_at: Schema.NullOr(Timestamp),
  ...stamps
})
export type OperatorToken = typeof OperatorToken.Type

export const OperatorTokenApi = HttpApiGroup.make("operator-token")
  .add(
    HttpApiEndpoint.post("rotate", "/rotate", {
      success: Schema.Struct({ token: OperatorToken, raw_token: Schema.RedactedFromValue(Schema.String) }),
      error: refusals("disabled_operator_token")
    }).annotateMerge(requires("operators:manage"))
  )
  .prefix("/operator-token")
