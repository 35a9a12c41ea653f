import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { refusals } from "./schema/Errors.ts"
import { bodyExample } from "./schema/Examples.ts"
import { Timestamp } from "./schema/Fields.ts"
import { RequestDecoding } from "./schema/Security.ts"

export const SignedIn = Schema.Struct({
  kind: Schema.Literals(["operator_token", "gateway_key"]),
  /** The id of the token or the key. A key that gets a new secret keeps it; a token that is rotated has a successor. */
  id: Schema.String,
  name: Schema.String,
  /** The current scopes of the operator token. A gateway key has `self` alone. */
  scopes: Schema.Array(Schema.String),
  /** Each use extends the session. It ends with its token or key at the latest. */
  expires_at: Timestamp,
  /** The header and its value that requests other than GET need beside the cookie. */
  csrf: Schema.Struct({ header: Schema.String, value: Schema.String })
})
export type SignedIn = typeof SignedIn.Type

/** The cookie of a pending sign-in contains it, and browsers drop cookies above 4,096 bytes. */
const maxReturnToLength = 1024

/** A parameter of the identity provider's answer. */
const Answered = Schema.optionalKey(Schema.String.check(Schema.isMaxLength(4096)))

const proof = ["cross_origin_request", "missing_csrf_header", "invalid_request", "store_unavailable"] as const

const unusableKey = [
  "invalid_virtual_key",
  "disabled_virtual_key",
  "revoked_virtual_key",
  "expired_virtual_key"
] as const

const create = HttpApiEndpoint.post("create", "/", {
  payload: Schema.Struct({ token: Schema.RedactedFromValue(Schema.String.check(Schema.isMaxLength(256))) }),
  success: SignedIn,
  error: refusals(
    "malformed_authorization",
    "invalid_operator_token",
    "disabled_operator_token",
    ...unusableKey,
    "too_many_sign_ins",
    "insecure_origin",
    ...proof
  )
})
  .annotate(OpenApi.Summary, "Sign in")
  .annotate(OpenApi.Description, "Sets the session cookie, and ends the session that the browser had.")
  .annotateMerge(bodyExample({ token: "op_live_…" }))

const show = HttpApiEndpoint.get("show", "/", {
  success: SignedIn,
  error: refusals("invalid_session", ...unusableKey, ...proof)
})
  .annotate(OpenApi.Summary, "Show who is signed in")
  .annotate(
    OpenApi.Description,
    "The session of a key that was disabled or revoked, or that has expired, gets the error that the key itself gets."
  )

const end = HttpApiEndpoint.delete("end", "/", {
  success: HttpApiSchema.NoContent,
  error: refusals(...proof)
})
  .annotate(OpenApi.Summary, "Sign out")
  .annotate(OpenApi.Description, "Ends the session in all processes. Without a session it changes nothing.")

/** The sessions of the listener for holders of keys. */
export const HolderSessionApi = HttpApiGroup.make("session")
  .add(create, show, end)
  .middleware(RequestDecoding)
  .prefix("/session")

export const SessionApi = HttpApiGroup.make("session")
  .annotate(OpenApi.Description, "Sessions of browsers: a cookie in place of an operator token or a gateway key.")
  .add(
    create,
    show,
    end,
    HttpApiEndpoint.get("oidc", "/oidc", {
      query: { return_to: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(maxReturnToLength))) },
      success: HttpApiSchema.Empty(303),
      error: refusals("not_found", "invalid_request", "identity_provider_unavailable", "store_unavailable")
    })
      .annotate(OpenApi.Summary, "Sign in at the identity provider")
      .annotate(
        OpenApi.Description,
        "Redirects the browser to the identity provider. After the sign-in it arrives at `return_to`, a path below `/admin-ui`."
      ),
    HttpApiEndpoint.get("oidcCallback", "/oidc/callback", {
      query: {
        state: Answered,
        code: Answered,
        error: Answered,
        iss: Answered
      },
      success: HttpApiSchema.Empty(303),
      error: refusals(
        "not_found",
        "invalid_request",
        "invalid_sign_in",
        "invalid_identity_token",
        "sign_in_refused",
        "too_many_operator_tokens",
        "identity_provider_unavailable",
        "store_unavailable"
      )
    })
      .annotate(OpenApi.Summary, "Return from the identity provider")
      .annotate(OpenApi.Description, "The identity provider sends browsers here. Sets the session cookie.")
  )
  .middleware(RequestDecoding)
  .prefix("/session")
