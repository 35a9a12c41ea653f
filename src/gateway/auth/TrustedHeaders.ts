import { createHmac, timingSafeEqual } from "node:crypto"
import { Option, Redacted, Result, Schema } from "effect"
import * as Headers from "../../http/Headers.ts"
import { GatewayError } from "../GatewayError.ts"
import { type Identity, type IdentityRequirements, unmetRequirement } from "./Identity.ts"

export const identityHeader = "x-trusted-gateway-identity"
export const signatureHeader = "x-trusted-gateway-signature"

/** If one of the two headers is present, the request is verified by these headers alone. */
export const arePresent = (headers: Headers.RawHeaders): boolean =>
  Headers.get(headers, identityHeader) !== undefined || Headers.get(headers, signatureHeader) !== undefined

const Instant = Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.Finite, Schema.String])))
const Texts = Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String)))

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
 * The identity header is JSON in unpadded base64url. The signature header is the HMAC-SHA256 of the identity header's
 * text, in the same encoding. Without `expires_at`, both are valid as long as the secret.
 */
export const verify = (
  headers: Headers.RawHeaders,
  secret: Redacted.Redacted,
  rules: IdentityRequirements,
  now: number
): Result.Result<Identity, GatewayError> => {
  const statementText = Headers.get(headers, identityHeader)
  const signature = Headers.get(headers, signatureHeader)
  if (statementText === undefined || signature === undefined) return Result.fail(untrustedIdentity)
  const expected = createHmac("sha256", Redacted.value(secret)).update(statementText, "latin1").digest()
  const presented = fromBase64Url(signature)
  if (presented?.length !== expected.length || !timingSafeEqual(presented, expected))
    return Result.fail(untrustedIdentity)
  const statement = Option.flatMap(
    Option.fromUndefinedOr(fromBase64Url(statementText)?.toString("utf8")),
    decodeStatement
  )
  if (Option.isNone(statement)) return Result.fail(untrustedIdentity)
  const { expires_at, groups, issued_at, roles, scopes, subject, tenant_id } = statement.value
  if (rules.tenantId !== null && tenant_id !== rules.tenantId) return Result.fail(untrustedIdentity)
  // An unreadable time is NaN, which fails these comparisons.
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

export const missingIdentity = new GatewayError({
  code: "missing_identity_authorization",
  message: `This gateway requires a signed identity: send ${identityHeader} and ${signatureHeader} together with the gateway key.`
})

export const untrustedIdentity = new GatewayError({
  code: "untrusted_gateway_identity",
  message:
    "The identity headers of the trusted gateway are not valid: both headers are required, with a matching signature and a current time."
})

const rfc3339 = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/

/** Returns NaN for an unreadable time. */
const toEpochMillis = (value: number | string): number =>
  typeof value === "number" ? value * 1000 : rfc3339.test(value) ? Date.parse(value) : Number.NaN

/** Returns `undefined` if the text is not the canonical base64url encoding of its bytes. */
const fromBase64Url = (text: string): Buffer | undefined => {
  const bytes = Buffer.from(text, "base64url")
  return text !== "" && bytes.toString("base64url") === text ? bytes : undefined
}
