import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { refusals } from "./schema/Errors.ts"
import { bodyExample } from "./schema/Examples.ts"
import { Timestamp } from "./schema/Fields.ts"
import { RequestDecoding } from "./schema/Security.ts"

export const SignedIn = Schema.Struct({
  kind: Schema.Literals(["operator_token", "gateway_key"]),
  name: Schema.String,
  /** The current scopes of the operator token. A gateway key has `self` alone. */
  scopes: Schema.Array(Schema.String),
  /** Each use extends the session. It ends with its token or key at the latest. */
  expires_at: Timestamp,
  /** The header and its value that requests other than GET need beside the cookie. */
  csrf: Schema.Struct({ header: Schema.String, value: Schema.String })
})
export type SignedIn = typeof SignedIn.Type

const proof = ["cross_origin_request", "missing_csrf_header", "invalid_request", "store_unavailable"] as const

export const SessionApi = HttpApiGroup.make("session")
  .annotate(OpenApi.Description, "Sessions of browsers: a cookie in place of an operator token or a gateway key.")
  .add(
    HttpApiEndpoint.post("create", "/", {
      payload: Schema.Struct({ token: Schema.RedactedFromValue(Schema.String.check(Schema.isMaxLength(256))) }),
      success: SignedIn,
      error: refusals(
        "malformed_authorization",
        "invalid_operator_token",
        "disabled_operator_token",
        "invalid_virtual_key",
        "disabled_virtual_key",
        "revoked_virtual_key",
        "expired_virtual_key",
        "too_many_sign_ins",
        "insecure_origin",
        ...proof
      )
    })
      .annotate(OpenApi.Summary, "Sign in")
      .annotate(OpenApi.Description, "Sets the session cookie, and ends the session that the browser had.")
      .annotateMerge(bodyExample({ token: "op_live_…" })),
    HttpApiEndpoint.get("show", "/", { success: SignedIn, error: refusals("invalid_session", ...proof) }).annotate(
      OpenApi.Summary,
      "Show who is signed in"
    ),
    HttpApiEndpoint.delete("end", "/", {
      success: HttpApiSchema.NoContent,
      error: refusals(...proof)
    })
      .annotate(OpenApi.Summary, "Sign out")
      .annotate(OpenApi.Description, "Ends the session in all processes. Without a session it changes nothing.")
  )
  .middleware(RequestDecoding)
  .prefix("/session")
