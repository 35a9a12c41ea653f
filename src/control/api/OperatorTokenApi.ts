import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { refusals } from "./schema/Errors.ts"
import { bodyExample } from "./schema/Examples.ts"
import { Cursor, Id, NextCursor, orUnreadable, PageLimit, Timestamp, timestamps } from "./schema/Fields.ts"
import { operation, requires, Scope, skipsUnreadable } from "./schema/Security.ts"

export const Name = Schema.String.check(
  Schema.isPattern(/^[^\p{Cc}]{1,120}$/u, { expected: "1 to 120 characters without control characters" })
)

/** An operator token. `token_prefix` is the only part of the secret that the API returns. */
export const OperatorToken = Schema.Struct({
  id: Id,
  name: Schema.String,
  token_prefix: Schema.String,
  /** `person`: stands for somebody who signs in at the identity provider. Nobody has the secret of such a token. */
  kind: Schema.Literals(["token", "person"]),
  roles: Schema.Array(Schema.String),
  scopes: Schema.Array(Scope),
  disabled: Schema.Boolean,
  revoked_at: Schema.NullOr(Timestamp),
  expires_at: Schema.NullOr(Timestamp),
  last_used_at: Schema.NullOr(Timestamp),
  ...timestamps
})
export type OperatorToken = typeof OperatorToken.Type

const ListedOperatorToken = OperatorToken.pipe(
  Schema.fieldsAssign({
    active: Schema.Boolean,
    /** True of the token that authenticates this request. */
    is_caller: Schema.Boolean,
    /** The number of browsers that are signed in with it. */
    session_count: Schema.Int
  })
).annotate({ identifier: "ListedOperatorToken" })
export type ListedOperatorToken = typeof ListedOperatorToken.Type

/** The only response that contains the raw token. */
export const MintedToken = Schema.Struct({ token: OperatorToken, raw_token: Schema.RedactedFromValue(Schema.String) })
export type MintedToken = typeof MintedToken.Type

/** The calling token must have all of `scopes`. Without `expires_at`, the new token is valid until it is revoked. */
export const NewOperatorToken = Schema.Struct({
  name: Name,
  scopes: Schema.Array(Scope).check(Schema.isBetweenLength(1, Scope.literals.length), Schema.isUnique()),
  expires_at: Schema.optionalKey(Schema.NullOr(Timestamp))
})
export type NewOperatorToken = typeof NewOperatorToken.Type

export const OperatorTokenApi = HttpApiGroup.make("operator-token")
  .annotate(OpenApi.Description, "The operator token that authenticates the request.")
  .add(
    HttpApiEndpoint.post("rotate", "/rotate", {
      success: MintedToken,
      error: refusals("disabled_operator_token")
    })
      .annotateMerge(operation("Replace the calling token", "operators:manage"))
      .annotate(
        OpenApi.Description,
        "The response contains the new token, which is never shown again. The old token stops working at once."
      )
  )
  .prefix("/operator-token")

const params = { id: Id }

/** A browser that is signed in with an operator token. */
export const OperatorSession = Schema.Struct({
  id: Id,
  token_id: Id,
  token_name: Schema.String,
  created_at: Timestamp,
  used_at: Timestamp,
  /** Each use extends the session. */
  expires_at: Timestamp
}).annotate({ identifier: "OperatorSession" })
export type OperatorSession = typeof OperatorSession.Type

export const OperatorSessionsApi = HttpApiGroup.make("operator-sessions")
  .annotate(OpenApi.Description, "Browsers that are signed in with operator tokens.")
  .add(
    HttpApiEndpoint.get("list", "/", {
      query: { limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(Cursor) },
      success: HttpApiSchema.WithHeaders(Schema.Array(OperatorSession), NextCursor)
    }).annotate(OpenApi.Summary, "List sessions of operators, newest first"),
    HttpApiEndpoint.delete("end", "/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: refusals("insufficient_operator_scope")
    })
      .annotate(OpenApi.Summary, "End a session of an operator")
      .annotate(
        OpenApi.Description,
        "The browser has to sign in again. Requires the scopes of the session's token, as revoking the token does."
      )
  )
  .annotateEndpointsMerge(requires("operators:manage"))
  .prefix("/operator-sessions")

/** A token can create or rotate another token only if it has all scopes of that token. */
export const OperatorTokensApi = HttpApiGroup.make("operator-tokens")
  .annotate(OpenApi.Description, "All operator tokens. A token can create only tokens whose scopes it has itself.")
  .add(
    HttpApiEndpoint.get("list", "/", {
      query: { limit: Schema.optionalKey(PageLimit), cursor: Schema.optionalKey(Cursor) },
      success: HttpApiSchema.WithHeaders(Schema.Array(ListedOperatorToken), NextCursor)
    })
      .annotate(OpenApi.Summary, "List operator tokens")
      .annotateMerge(skipsUnreadable),
    HttpApiEndpoint.post("create", "/", {
      payload: NewOperatorToken,
      success: MintedToken,
      error: refusals("invalid_request", "insufficient_operator_scope", "too_many_operator_tokens")
    })
      .annotate(OpenApi.Summary, "Create an operator token")
      .annotate(OpenApi.Description, "The response contains the raw token, which is never shown again.")
      .annotateMerge(bodyExample({ name: "dashboards", scopes: ["usage:read"] })),
    HttpApiEndpoint.get("scopes", "/scopes", {
      success: Schema.Array(Schema.Struct({ scope: Scope, help: Schema.String }))
    }).annotate(OpenApi.Summary, "List the scopes that tokens can have"),
    HttpApiEndpoint.get("get", "/:id", { params, success: OperatorToken }).annotate(
      OpenApi.Summary,
      "Show an operator token"
    ),
    HttpApiEndpoint.post("rotate", "/:id/rotate", {
      params,
      success: MintedToken,
      error: refusals("insufficient_operator_scope", "operator_token_not_active")
    })
      .annotate(OpenApi.Summary, "Replace an operator token")
      .annotate(
        OpenApi.Description,
        "The response contains the new token, which is never shown again. The old token stops working at once."
      ),
    HttpApiEndpoint.post("revoke", "/:id/revoke", {
      params,
      success: orUnreadable(OperatorToken),
      error: refusals("last_operator_token")
    })
      .annotate(OpenApi.Summary, "Revoke an operator token permanently")
      .annotate(
        OpenApi.Description,
        "The last token with all scopes and no expiry cannot be revoked, because no operator could manage tokens afterwards."
      )
  )
  .annotateEndpointsMerge(requires("operators:manage"))
  .prefix("/operator-tokens")
