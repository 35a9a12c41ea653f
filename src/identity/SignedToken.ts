import { Effect, Option, Predicate, Schema } from "effect"
import { compactVerify } from "jose"
import { Algorithm } from "../policy/AuthSettings.ts"
import type { IdentityProvider } from "./IdentityProvider.ts"
import type { IssuerKeys } from "./IssuerKeys.ts"
import { TokenRefused } from "./TokenRefused.ts"

/** An unverified token. Its contents are not trusted before the signature is verified. */
export interface SignedToken {
  readonly raw: string
  readonly kid: string | undefined
  readonly alg: string | undefined
}

const compact = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]*$/
const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const isAlgorithm = Schema.is(Algorithm)

const parseJson = (bytes: Buffer): unknown => Option.getOrUndefined(decodeJson(bytes.toString("utf8")))

const decodePart = (text: string | undefined): unknown => parseJson(Buffer.from(text ?? "", "base64url"))

export const parse = (raw: string): Option.Option<SignedToken> => {
  const header = decodePart(compact.exec(raw)?.[1])
  return Predicate.isObject(header)
    ? Option.some({ raw, kid: textOf(header, "kid"), alg: textOf(header, "alg") })
    : Option.none()
}

/** Returns true if an unverified token names this issuer. */
export const claimsIssuer = (raw: string, issuer: string): boolean => {
  const claims = decodePart(compact.exec(raw)?.[2])
  return Predicate.hasProperty(claims, "iss") && claims.iss === issuer
}

/** Verifies the signature alone. Returns the claims, and the key set that the signature was verified with. */
export const verify = Effect.fnUntraced(function* (
  { alg, kid, raw }: SignedToken,
  { algorithms }: IdentityProvider,
  keys: IssuerKeys
) {
  if (kid === undefined || !isAlgorithm(alg) || !algorithms.includes(alg)) return yield* unverifiable
  const set = yield* keys.setFor(kid)
  const { payload } = yield* Effect.tryPromise({
    try: () => compactVerify(raw, set.select, { algorithms: [alg] }),
    catch: () => unverifiable
  })
  return { claims: parseJson(Buffer.from(payload)), set }
})

const unverifiable = new TokenRefused({ fault: "unverifiable" })

const textOf = (value: object, name: string): string | undefined =>
  Predicate.hasProperty(value, name) && typeof value[name] === "string" ? value[name] : undefined
