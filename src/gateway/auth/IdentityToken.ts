import { Option, Predicate, Result, Schema } from "effect"
import * as Headers from "../../http/Headers.ts"
import { GatewayError } from "../GatewayError.ts"

/** An unverified token from the client. Its contents are not trusted before the signature is verified. */
export interface IdentityToken {
  readonly raw: string
  readonly kid: string | undefined
  readonly alg: string | undefined
}

const scheme = "Bearer "
const compact = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]*$/
const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

export const parseJson = (bytes: Buffer): unknown => Option.getOrUndefined(decodeJson(bytes.toString("utf8")))

const decodePart = (text: string | undefined): unknown => parseJson(Buffer.from(text ?? "", "base64url"))

export const fromHeaders = (headers: Headers.RawHeaders): Result.Result<IdentityToken, GatewayError> => {
  const authorization = Headers.get(headers, "authorization")
  if (authorization === undefined) return Result.fail(missing)
  const raw = authorization.startsWith(scheme) ? authorization.slice(scheme.length).trim() : ""
  const header = decodePart(compact.exec(raw)?.[1])
  return Predicate.isObject(header)
    ? Result.succeed({ raw, kid: textOf(header, "kid"), alg: textOf(header, "alg") })
    : Result.fail(malformed)
}

/** Returns true if an unverified token names this issuer. Such an identity token is never sent to an upstream. */
export const claimsIssuer = (raw: string, issuer: string): boolean => {
  const claims = decodePart(compact.exec(raw)?.[2])
  return Predicate.hasProperty(claims, "iss") && claims.iss === issuer
}

const textOf = (value: object, name: string): string | undefined =>
  Predicate.hasProperty(value, name) && typeof value[name] === "string" ? value[name] : undefined

const missing = new GatewayError({
  code: "missing_identity_authorization",
  message:
    "This gateway requires an identity: send Authorization: Bearer <identity token>, and the gateway key in its own header."
})

const malformed = new GatewayError({
  code: "malformed_identity_authorization",
  message:
    'The Authorization header must be "Bearer " and an identity token (JWT). Send the gateway key in its own header.'
})
