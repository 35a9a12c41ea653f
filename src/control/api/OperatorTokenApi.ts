import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { refusals } from "./schema/Errors.ts"
import { bodyExample } from "./schema/Examples.ts"
import { Cursor, Id, NextCursor, orUnreadable, PageLimit, Timestamp, timestamps } from "./schema/Fields.ts"
import { requires, Scope, skipsUnreadable } from "./schema/Security.ts"

export const Name = Schema.String.check(
  Schema.isPattern(/^[^\p{Cc}]{1,120}$/u, { expected: "1 to 120 characters without control characters" })
)

/** What may be shown of a token: never more of the secret than its first characters. */
export const OperatorToken = Schema.Struct({
  id: Id,
  name: Schema.String,
  token_prefix: Schema.String,
  roles: Schema.Array(Schema.String),
  scopes: Schema.Array(Scope),
  disabled: Schema.Boolean,
  revoked_at: Schema.NullOr(Timestamp),
  expires_at: Schema.NullOr(Timestamp),
  last_used_at: Schema.NullOr(Timestamp),
  ...timestamps
})
export type OperatorToken = typeof OperatorToken.Type

/** The raw token is shown here and never again. */
export const MintedToken = Schema.Struct({ token: OperatorToken, raw_token: Schema.RedactedFromValue(Schema.String) })
export type MintedToken = typeof MintedToken.Type

/** `scopes`: some of those that the caller's own token has. Without `expires_at` it lasts until it is revoked. */
export const NewOperatorToken = Schema.Struct({
  name: Name,
  scopes: Schema.Array(Scope).check(Schema.isBetweenLength(1, Scope.literals.length), Schema.isUnique()),
  expires_at: Schema.optionalKey(Schema.NullOr(Timestamp))
})
export type NewOperatorToken = typeof NewOperatorToken.Type

/** The token of the call itself. */
export const OperatorTokenApi = HttpApiGroup.make("operator-token")
  .annotate(OpenApi.Description, "The token that calls.")
  .add(
    HttpApiEndpoint.post("rotate", "/rotate", {
      success: MintedToken,
      error: refusals("disabled_operator_token")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Replace the calling token",
          description: "The answer has the new token, which is never shown again; the old one stops working at once."
        })
      )
      .annotateMerge(requires("operators:manage"))
  )
  .prefix("/operator-token")

const params = { id: Id }

/** All operator tokens. Nobody hands out, or takes over by rotating, a scope that they do not have. */
export const OperatorTokensApi = HttpApiGroup.make("operator-tokens")
  .annotate(OpenApi.Description, "All operator tokens. Nobody hands out a scope that they do not have.")
  .add(
    HttpApiEndpoint.get("list", "/", {
      query: { limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(Cursor) },
      success: HttpApiSchema.WithHeaders(Schema.Array(OperatorToken), NextCursor)
    })
      .annotate(OpenApi.Summary, "List operator tokens")
      .annotateMerge(skipsUnreadable),
    HttpApiEndpoint.post("create", "/", {
      payload: NewOperatorToken,
      success: MintedToken,
      error: refusals("invalid_request", "insufficient_operator_scope", "too_many_operator_tokens")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Create an operator token",
          description: "The answer has the raw token, which is never shown again."
        })
      )
      .annotateMerge(bodyExample({ name: "dashboards", scopes: ["usage:read"] })),
    HttpApiEndpoint.get("get", "/:id", { params, success: OperatorToken }).annotate(
      OpenApi.Summary,
      "Show an operator token"
    ),
    HttpApiEndpoint.post("rotate", "/:id/rotate", {
      params,
      success: MintedToken,
      error: refusals("insufficient_operator_scope", "operator_token_not_active")
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Replace an operator token",
        description: "The answer has the new token, which is never shown again; the old one stops working at once."
      })
    ),
    HttpApiEndpoint.post("revoke", "/:id/revoke", {
      params,
      success: orUnreadable(OperatorToken),
      error: refusals("last_operator_token")
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Revoke an operator token for good",
        description: "Not the last one that may manage operators, which would lock everybody out."
      })
    )
  )
  .annotateEndpointsMerge(requires("operators:manage"))
  .prefix("/operator-tokens")
