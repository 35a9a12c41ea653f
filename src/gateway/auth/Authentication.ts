import { Result } from "effect"
import * as Headers from "../../http/Headers.ts"
import { refusalMessages } from "../../policy/KeyState.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import { isWellFormed, keyPrefix, operatorTokenPrefix } from "../../state/Secret.ts"
import { GatewayError } from "../GatewayError.ts"
import type { CallerAuth } from "./CallerAuth.ts"
import * as IdentityToken from "./IdentityToken.ts"

/** What a request presents as its credential. */
export type PresentedCredential =
  | { readonly _tag: "GatewayKey"; readonly raw: string }
  /** A bearer credential that is no gateway key: in direct mode the upstream's own. */
  | { readonly _tag: "OtherBearer"; readonly raw: string }

const scheme = "Bearer "

/**
 * `Authorization: Bearer …`. Family B's client sends its key as `x-api-key`: on family B routes that is read as well, and
 * only for gateway keys. A client that is signed in with its vendor sends the vendor's bearer beside it, which is
 * nobody's business here.
 */
export const readCredential = (
  headers: Headers.RawHeaders,
  family: Family
): Result.Result<PresentedCredential, GatewayError> => {
  const authorization = Headers.get(headers, "authorization")
  const apiKey = family === "b" ? Headers.get(headers, "x-api-key") : undefined
  const ours = apiKey?.startsWith(keyPrefix) ? apiKey : undefined
  if (authorization === undefined) {
    if (ours !== undefined) return checkedGatewayKey(ours)
    return Result.fail(
      new GatewayError({
        code: "missing_authorization",
        message: "The Authorization header is required: Authorization: Bearer <gateway key>."
      })
    )
  }
  const raw = authorization.startsWith(scheme) ? authorization.slice(scheme.length).trim() : ""
  // an operator token is the gateway's own secret: in no mode does it go to an upstream
  if (raw === "" || raw.startsWith(operatorTokenPrefix)) return Result.fail(malformedAuthorization)
  if (raw.startsWith(keyPrefix)) return checkedGatewayKey(raw)
  return ours === undefined ? Result.succeed({ _tag: "OtherBearer", raw }) : checkedGatewayKey(ours)
}

/** Where an identity is asked for as well, the gateway key comes in a header of its own, and in no other. */
export const readKeyHeader = (
  headers: Headers.RawHeaders,
  { keyHeader }: CallerAuth
): Result.Result<string, GatewayError> => {
  const raw = Headers.get(headers, keyHeader)?.trim()
  if (raw === undefined || raw === "") {
    return Result.fail(
      new GatewayError({
        code: "missing_authorization",
        message: `The gateway key is required beside the identity: ${keyHeader}: <gateway key>.`
      })
    )
  }
  return isWellFormed(keyPrefix, raw)
    ? Result.succeed(raw)
    : Result.fail(
        new GatewayError({
          code: "malformed_authorization",
          message: `The ${keyHeader} header must be a gateway key, which begins with ${keyPrefix}.`
        })
      )
}

/**
 * Whether a request brings anything that this gateway has to judge: a gateway key in any header (clients still write to
 * one that was renamed), or a bearer that says it is an identity. In direct mode whatever else it brings is the
 * upstream's business.
 */
export const hasGatewayCredential = (headers: Headers.RawHeaders, family: Family, frontDoor: CallerAuth): boolean => {
  const { provider, unreadable } = frontDoor
  // where the settings are not known, anything may be an identity
  if (unreadable === true) return true
  for (let i = 1; i < headers.length; i += 2) if (headers[i]!.trimStart().startsWith(keyPrefix)) return true
  const bearer = readCredential(headers, family)
  if (Result.isFailure(bearer)) return false
  const { _tag, raw } = bearer.success
  return _tag === "GatewayKey" || (provider !== undefined && IdentityToken.claimsIssuer(raw, provider.issuer))
}

export const malformedAuthorization = new GatewayError({
  code: "malformed_authorization",
  message: `The Authorization header must be "Bearer " and a gateway key, which begins with ${keyPrefix}.`
})

const checkedGatewayKey = (raw: string): Result.Result<PresentedCredential, GatewayError> =>
  isWellFormed(keyPrefix, raw) ? Result.succeed({ _tag: "GatewayKey", raw }) : Result.fail(malformedAuthorization)

export const unknownKey = new GatewayError({
  code: "invalid_virtual_key",
  message: refusalMessages.invalid_virtual_key
})
