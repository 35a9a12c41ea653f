import { createHmac, timingSafeEqual } from "node:crypto"
import { Option, Redacted, Result, Schema } from "effect"
import * as Headers from "../../http/Headers.ts"
import { GatewayError } from "../GatewayError.ts"
import { type Identity, type IdentityRequirements, unmetRequirement } from "./Identity.ts"

export const identityHeader = "x-trusted-gateway-identity"
export const signatureHeader = "x-trusted-gateway-signature"

/** One of the pair is enough: the request is then judged by them and by nothing else. */
export const arePresent = (headers: Headers.RawHeaders): boolean =>
  Headers.get(headers, identityHeader) !== undefined || Headers.get(headers, signatureHeader) !== undefined

/** Seconds since 1970, as in a token, or RFC 3339. */
const Instant = Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.Finite, Schema.String])))
const Texts = Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String)))

/** What the identity header holds; members that are not named here mean nothing. */
const Statement = Schema.fromJsonString(
  Schema.Struct({
    tenant_id: Schema.String,
    subject: Schema.optionalKey(Schema.NullOr(Schema.String)),
    scopes: Texts,
    roles: Texts,
    groups: Texts,
    issued_at: Instant,
    expires_at: Instant
  })
)
const decodeStatement = Schema.decodeUnknownOption(Statement)

/**
 * The identity that a trusted gateway states: JSON in unpadded base64url, and in the other header the HMAC-SHA256 of
 * exactly that text, in the same form. Without `expires_at` a pair is good for as long as the secret is.
 */
export const verify = (
  headers: Headers.RawHeaders,
  secret: Redacted.Redacted,
  rules: IdentityRequirements,
  now: number
): Result.Result<Identity, GatewayError> => {
  const stated = Headers.get(headers, identityHeader)
  const signature = Headers.get(headers, signatureHeader)
  if (stated === undefined || signature === undefined) return Result.fail(untrustedIdentity)
  const expected = createHmac("sha256", Redacted.value(secret)).update(stated, "latin1").digest()
  const given = fromBase64Url(signature)
  if (given?.length !== expected.length || !timingSafeEqual(given, expected)) return Result.fail(untrustedIdentity)
  const statement = Option.flatMap(Option.fromUndefinedOr(fromBase64Url(stated)?.toString("utf8")), decodeStatement)
  if (Option.isNone(statement)) return Result.fail(untrustedIdentity)
  const { expires_at, groups, issued_at, roles, scopes, subject, tenant_id } = statement.value
  if (rules.tenantId !== null && tenant_id !== rules.tenantId) return Result.fail(untrustedIdentity)
  // written so that a time which cannot be read (NaN) refuses
  const issued = issued_at == null || toEpochMillis(issued_at) - rules.skewMs <= now
  const alive = expires_at == null || toEpochMillis(expires_at) + rules.skewMs > now
  if (!issued || !alive) return Result.fail(untrustedIdentity)
  const identity: Identity = {
    source: "trusted_gateway",
    tenantId: tenant_id,
    subject: subject ?? undefined,
    scopes: scopes ?? [],
    roles: roles ?? [],
    groups: groups ?? []
  }
  const refusal = unmetRequirement(identity, rules)
  return refusal === undefined ? Result.succeed(identity) : Result.fail(refusal)
}

/** Where there is no other way in. */
export const missingIdentity = new GatewayError({
  code: "missing_identity_authorization",
  message: `This gateway asks for a signed identity: ${identityHeader} and ${signatureHeader}, beside the gateway key.`
})

export const untrustedIdentity = new GatewayError({
  code: "untrusted_gateway_identity",
  message: "The identity that the gateway in front states cannot be trusted: it needs both headers, signed and in time."
})

const rfc3339 = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/

/** Epoch milliseconds; NaN for what is no time. */
const toEpochMillis = (value: number | string): number =>
  typeof value === "number" ? value * 1000 : rfc3339.test(value) ? Date.parse(value) : Number.NaN

/** The bytes, if this is how they are written: one text for each, without padding. */
const fromBase64Url = (text: string): Buffer | undefined => {
  const bytes = Buffer.from(text, "base64url")
  return text !== "" && bytes.toString("base64url") === text ? bytes : undefined
}
