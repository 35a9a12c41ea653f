import { Result } from "effect"
import * as Headers from "../../http/Headers.ts"
import * as SignedToken from "../../identity/SignedToken.ts"
import { refusalMessages } from "../../policy/KeyState.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import { isWellFormed, keyPrefix, operatorTokenPrefix } from "../../state/Secret.ts"
import { GatewayError } from "../GatewayError.ts"
import type { CallerAuth } from "./CallerAuth.ts"

export type PresentedCredential =
  | { readonly _tag: "GatewayKey"; readonly raw: string }
  /** A bearer token that is not a gateway key. In direct mode it is the client's own upstream credential. */
  | { readonly _tag: "OtherBearer"; readonly raw: string }

const scheme = "Bearer "

/**
 * Reads `Authorization: Bearer …`. On Anthropic's routes, `x-api-key` may hold the gateway key instead. Any other
 * bearer token is then ignored, because Anthropic clients may send one of their own in addition.
 */
export const readCredential = (
  headers: Headers.RawHeaders,
  family: Family
): Result.Result<PresentedCredential, GatewayError> => {
  const authorization = Headers.get(headers, "authorization")
  const apiKey = family === "b" ? Headers.get(headers, "x-api-key") : undefined
  const gatewayApiKey = apiKey?.startsWith(keyPrefix) ? apiKey : undefined
  if (authorization === undefined) {
    if (gatewayApiKey !== undefined) return checkedGatewayKey(gatewayApiKey)
    return Result.fail(
      new GatewayError({
        code: "missing_authorization",
        message: "The Authorization header is required: Authorization: Bearer <gateway key>."
      })
    )
  }
  const raw = authorization.startsWith(scheme) ? authorization.slice(scheme.length).trim() : ""
  // An operator token is refused here, so that it never reaches an upstream.
  if (raw === "" || raw.startsWith(operatorTokenPrefix)) return Result.fail(malformedAuthorization)
  if (raw.startsWith(keyPrefix)) return checkedGatewayKey(raw)
  return gatewayApiKey === undefined ? Result.succeed({ _tag: "OtherBearer", raw }) : checkedGatewayKey(gatewayApiKey)
}

export const readKeyHeader = (
  headers: Headers.RawHeaders,
  { keyHeader }: CallerAuth
): Result.Result<string, GatewayError> => {
  const raw = Headers.get(headers, keyHeader)?.trim()
  if (raw === undefined || raw === "") {
    return Result.fail(
      new GatewayError({
        code: "missing_authorization",
        message: `A gateway key is required in addition to the identity: ${keyHeader}: <gateway key>.`
      })
    )
  }
  return isWellFormed(keyPrefix, raw)
    ? Result.succeed(raw)
    : Result.fail(
        new GatewayError({
          code: "malformed_authorization",
          message: `The ${keyHeader} header must be a whole gateway key: ${keyPrefix} and 72 hexadecimal digits.`
        })
      )
}

/**
 * Returns true if the request carries a credential that the gateway must check. This is a gateway key in any header, or
 * an identity token of the configured issuer. In direct mode all other credentials belong to the upstream.
 */
export const hasGatewayCredential = (headers: Headers.RawHeaders, family: Family, callerAuth: CallerAuth): boolean => {
  const { provider, unreadable } = callerAuth
  // The settings cannot be decoded, so any bearer token may be an identity token.
  if (unreadable === true) return true
  for (let i = 1; i < headers.length; i += 2) if (headers[i]!.trimStart().startsWith(keyPrefix)) return true
  const bearer = readCredential(headers, family)
  if (Result.isFailure(bearer)) return false
  const { _tag, raw } = bearer.success
  return _tag === "GatewayKey" || (provider !== undefined && SignedToken.claimsIssuer(raw, provider.issuer))
}

export const malformedAuthorization = new GatewayError({
  code: "malformed_authorization",
  message: `The Authorization header must be "Bearer " and a whole gateway key: ${keyPrefix} and 72 hexadecimal digits.`
})

const checkedGatewayKey = (raw: string): Result.Result<PresentedCredential, GatewayError> =>
  isWellFormed(keyPrefix, raw) ? Result.succeed({ _tag: "GatewayKey", raw }) : Result.fail(malformedAuthorization)

export const unknownKey = new GatewayError({
  code: "invalid_virtual_key",
  message: refusalMessages.invalid_virtual_key
})
