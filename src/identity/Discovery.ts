import { Effect, Schema } from "effect"
import type { Egress } from "../services/Egress.ts"
import type { IdentityProvider } from "./IdentityProvider.ts"
import { TokenRefused } from "./TokenRefused.ts"

const fetchTimeoutMs = 3000
const maxDocumentBytes = 262_144

/** `why` is for the log. */
export interface LoadFailure {
  readonly why: string
  readonly refusal: TokenRefused
}

const Document = Schema.fromJsonString(
  Schema.Struct({
    issuer: Schema.String,
    jwks_uri: Schema.String,
    authorization_endpoint: Schema.optionalKey(Schema.Unknown),
    token_endpoint: Schema.optionalKey(Schema.Unknown),
    token_endpoint_auth_methods_supported: Schema.optionalKey(Schema.Unknown)
  })
)
export type Document = typeof Document.Type
const decodeDocument = Schema.decodeUnknownEffect(Document)

export const load = Effect.fnUntraced(function* (
  { discoveryUrl, issuer }: Pick<IdentityProvider, "discoveryUrl" | "issuer">,
  egress: Egress["Service"]
) {
  const document = yield* Effect.mapError(
    decodeDocument(yield* fetchDocument(egress, "discovery document", discoveryUrl)),
    () => unavailable("the discovery document lacks issuer or jwks_uri")
  )
  return document.issuer === issuer ? document : yield* Effect.fail(wrongDiscoveryIssuer)
})

export const fetchDocument = Effect.fnUntraced(function* (egress: Egress["Service"], what: string, url: string) {
  const { body, status } = yield* Effect.mapError(
    egress.fetch({
      method: "GET",
      url,
      headers: { accept: "application/json" },
      withinMs: fetchTimeoutMs,
      maxBytes: maxDocumentBytes
    }),
    ({ message, reason }) => unavailable(`the ${what} cannot be fetched (${reason}): ${message}`)
  )
  if (status !== 200) return yield* Effect.fail(unavailable(`fetching the ${what} returned status ${status}`))
  return Buffer.from(body).toString("utf8")
})

export const unavailable = (why: string): LoadFailure => ({
  why,
  refusal: new TokenRefused({ fault: "keys_unavailable" })
})

const wrongDiscoveryIssuer: LoadFailure = {
  why: "the discovery document names another issuer than the configured one",
  refusal: new TokenRefused({ fault: "wrong_issuer" })
}
