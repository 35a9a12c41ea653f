import { Cache, Clock, Effect, Exit, Option, Redacted, Schema } from "effect"
import * as Discovery from "../../identity/Discovery.ts"
import type { IdentityProvider } from "../../identity/IdentityProvider.ts"
import * as IssuerKeys from "../../identity/IssuerKeys.ts"
import * as SignedToken from "../../identity/SignedToken.ts"
import * as TokenClaims from "../../identity/TokenClaims.ts"
import { type TokenFault, TokenRefused } from "../../identity/TokenRefused.ts"
import { Egress, type EgressResponse } from "../../services/Egress.ts"
import { ControlError } from "../api/schema/Errors.ts"
import type { OidcClient } from "./OidcClient.ts"

/** The identity provider of the settings. Its `audience` is the client's id, as in every id token. */
export interface OidcProvider extends IdentityProvider {
  readonly tenantId: string | null
  readonly skewMs: number
}

/** The parameters that one sign-in and the identity provider exchange. */
export interface Proofs {
  readonly nonce: string
  readonly redirectUri: string
}

export interface Person {
  readonly subject: string
  readonly groups: ReadonlyArray<string>
}

const exchangeTimeoutMs = 5000
const maxAnswerBytes = 262_144

/** Talks to the identity provider as an OpenID Connect client. */
export const make = Effect.gen(function* () {
  const egress = yield* Egress
  const keysOf = IssuerKeys.makeCurrent(egress, yield* Effect.scope)
  const documents = yield* Cache.makeWith(
    (provider: Pick<OidcProvider, "discoveryUrl" | "issuer">) => Discovery.load(provider, egress),
    { capacity: 4, timeToLive: (exit) => (Exit.isSuccess(exit) ? "5 minutes" : "5 seconds") }
  )

  const endpointsOf = Effect.fnUntraced(function* ({ discoveryUrl, issuer }: OidcProvider) {
    const document = yield* Effect.catch(Cache.get(documents, { discoveryUrl, issuer }), ({ why }) => unavailable(why))
    const endpoints = decodeEndpoints(document)
    if (Option.isNone(endpoints)) {
      return yield* unavailable("the discovery document lacks authorization_endpoint or token_endpoint")
    }
    return endpoints.value
  })

  /** Returns the id token. */
  const exchange = Effect.fnUntraced(function* (
    provider: OidcProvider,
    client: OidcClient,
    grant: { readonly code: string; readonly verifier: string; readonly redirectUri: string }
  ) {
    const { token_endpoint: url, token_endpoint_auth_methods_supported: methods } = yield* endpointsOf(provider)
    const inBody = methods?.includes("client_secret_basic") === false
    const form = new URLSearchParams({
      grant_type: "authorization_code",
      code: grant.code,
      redirect_uri: grant.redirectUri,
      code_verifier: grant.verifier,
      ...(inBody && { client_id: client.id, client_secret: Redacted.value(client.secret) })
    })
    const answer = yield* Effect.catch(
      egress.fetch({
        method: "POST",
        url,
        headers: {
          accept: "application/json",
          "content-type": "application/x-www-form-urlencoded",
          ...(!inBody && { authorization: basicOf(client) })
        },
        body: Buffer.from(form.toString()),
        withinMs: exchangeTimeoutMs,
        maxBytes: maxAnswerBytes
      }),
      ({ message, reason }) => unavailable(`the token endpoint cannot be reached (${reason}): ${message}`)
    )
    if (answer.status !== 200) return yield* refusedExchange(answer)
    const decoded = decodeTokens(textOf(answer))
    return Option.isSome(decoded)
      ? decoded.value.id_token
      : yield* unavailable("the token endpoint returned no id token")
  })

  const verify = Effect.fnUntraced(function* (
    idToken: string,
    provider: OidcProvider,
    client: OidcClient,
    nonce: string
  ) {
    const token = SignedToken.parse(idToken)
    if (Option.isNone(token)) return yield* new TokenRefused({ fault: "unverifiable" })
    const signed = yield* SignedToken.verify(token.value, provider, keysOf(provider))
    const rules: TokenClaims.ClaimRules = {
      ...provider,
      acceptsTenant: (tid) => provider.tenantId === null || tid === provider.tenantId
    }
    const now = yield* Clock.currentTimeMillis
    const { claims } = yield* Effect.fromResult(TokenClaims.check(signed.claims, rules, now))
    if (claims["azp"] !== undefined && claims["azp"] !== client.id) {
      return yield* new TokenRefused({ fault: "wrong_audience" })
    }
    if (claims["nonce"] !== nonce) return yield* otherSignIn
    if (!isSubject(claims.sub)) return yield* noSubject
    const person: Person = { subject: claims.sub, groups: TokenClaims.groupsOf(claims, client.groupsClaim) }
    return person
  })

  return {
    /** The address at which the person signs in. */
    signInUrl: Effect.fnUntraced(function* (
      provider: OidcProvider,
      client: OidcClient,
      { challenge, nonce, redirectUri, state }: Proofs & { readonly challenge: string; readonly state: string }
    ) {
      const { authorization_endpoint } = yield* endpointsOf(provider)
      const url = new URL(authorization_endpoint)
      const parameters = {
        response_type: "code",
        client_id: client.id,
        redirect_uri: redirectUri,
        scope: ["openid", ...client.requestedScopes].join(" "),
        state,
        nonce,
        code_challenge: challenge,
        code_challenge_method: "S256"
      }
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
      return url.href
    }),

    /** Exchanges the code, and returns the person whom the id token names. */
    personOf: Effect.fnUntraced(function* (
      provider: OidcProvider,
      client: OidcClient,
      { code, nonce, redirectUri, verifier }: Proofs & { readonly code: string; readonly verifier: string }
    ) {
      const idToken = yield* exchange(provider, client, { code, verifier, redirectUri })
      return yield* Effect.catchTag(verify(idToken, provider, client, nonce), "TokenRefused", ({ fault }) =>
        Effect.fail(refusals[fault])
      )
    })
  }
})

const Address = Schema.String.check(
  Schema.makeFilter((text: string) => {
    const url = URL.parse(text)
    return (
      url !== null && ["http:", "https:"].includes(url.protocol) && `${url.username}${url.password}${url.hash}` === ""
    )
  })
)
const Endpoints = Schema.Struct({
  authorization_endpoint: Address,
  token_endpoint: Address,
  token_endpoint_auth_methods_supported: Schema.optionalKey(Schema.Array(Schema.String))
})
const decodeEndpoints = Schema.decodeUnknownOption(Endpoints)
const decodeTokens = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ id_token: Schema.String })))

/** The codes of OAuth are words. Anything else may be a secret, and is not repeated. */
export const ErrorWord = Schema.String.check(Schema.isPattern(/^[a-z_]{1,64}$/))
const decodeError = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ error: ErrorWord })))

const isSubject = Schema.is(Schema.String.check(Schema.isPattern(/^[^\p{Cc}]{1,255}$/u)))

const textOf = ({ body }: EgressResponse): string => Buffer.from(body).toString("utf8")

/** Id and secret are form-encoded first (RFC 6749 §2.3.1). */
const basicOf = ({ id, secret }: OidcClient): string => {
  const encoded = (text: string) => new URLSearchParams({ "": text }).toString().slice(1)
  return `Basic ${Buffer.from(`${encoded(id)}:${encoded(Redacted.value(secret))}`).toString("base64")}`
}

const refusedExchange = (answer: EgressResponse) => {
  const word = Option.match(decodeError(textOf(answer)), {
    onNone: () => "no error code",
    onSome: ({ error }) => error
  })
  return word === "invalid_grant"
    ? Effect.fail(codeRefused)
    : unavailable(`the token endpoint returned status ${answer.status} (${word})`)
}

const unavailable = (why: string) =>
  Effect.andThen(
    Effect.logWarning("a sign-in at the identity provider failed", { why }),
    Effect.fail(providerUnavailable)
  )

const providerUnavailable = new ControlError(
  "identity_provider_unavailable",
  "The identity provider cannot be reached, or does not answer as OpenID Connect requires; the log of this process says why. Try again shortly."
)

const codeRefused = new ControlError(
  "invalid_sign_in",
  "The identity provider no longer accepts the code of this sign-in. Sign in again with GET /admin-ui/session/oidc."
)

const invalidToken = (why: string) =>
  new ControlError(
    "invalid_identity_token",
    `The identity provider's token ${why}. Nobody was signed in. Check IDENTITY_SIGN_IN_CLIENT_ID and the settings of the identity provider.`
  )

const otherSignIn = invalidToken("belongs to another sign-in (nonce)")
const noSubject = invalidToken("names no person (sub)")

const refusals: Readonly<
  Record<TokenFault, ControlError<"invalid_identity_token"> | ControlError<"identity_provider_unavailable">>
> = {
  unverifiable: invalidToken("is not signed by the identity provider with an accepted algorithm"),
  keys_unavailable: providerUnavailable,
  wrong_issuer: invalidToken("is from another issuer or tenant"),
  wrong_audience: invalidToken("is meant for another client (aud, azp)"),
  invalid_time: invalidToken("has no expiry time (exp), or is not valid yet (nbf, iat)"),
  expired: invalidToken("has expired")
}
