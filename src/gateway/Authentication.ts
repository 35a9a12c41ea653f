import { Result } from "effect"
import { GatewayError } from "./GatewayError.ts"
import * as Headers from "./Headers.ts"
import type { Family } from "./model/CanonicalRoute.ts"
import { refusals } from "./model/KeyState.ts"
import { keyPrefix, operatorTokenPrefix, wellFormed } from "./model/Secret.ts"

/** What a request presents as its credential. */
export type Presented =
  | { readonly _tag: "GatewayKey"; readonly raw: string }
  /** A bearer credential that is no gateway key: in direct mode the upstream's own. */
  | { readonly _tag: "OtherBearer"; readonly raw: string }

const scheme = "Bearer "

/**
 * `Authorization: Bearer …`. Family B's client sends its key as `x-api-key`; on family B routes that is read as well when
 * there is no `Authorization`, and only for gateway keys.
 */
export const presented = (headers: Headers.RawHeaders, family: Family): Result.Result<Presented, GatewayError> => {
  const authorization = Headers.get(headers, "authorization")
  if (authorization === undefined) {
    const apiKey = family === "b" ? Headers.get(headers, "x-api-key") : undefined
    if (apiKey?.startsWith(keyPrefix)) return gatewayKey(apiKey)
    return Result.fail(
      new GatewayError({
        code: "missing_authorization",
        message: "The Authorization header is required: Authorization: Bearer <gateway key>."
      })
    )
  }
  const raw = authorization.startsWith(scheme) ? authorization.slice(scheme.length).trim() : ""
  // an operator token is the gateway's own secret: in no mode does it go to an upstream
  if (raw === "" || raw.startsWith(operatorTokenPrefix)) return Result.fail(malformed)
  return raw.startsWith(keyPrefix) ? gatewayKey(raw) : Result.succeed({ _tag: "OtherBearer", raw })
}

export const malformed = new GatewayError({
  code: "malformed_authorization",
  message: `The Authorization header must be "Bearer " and a gateway key, which begins with ${keyPrefix}.`
})

const gatewayKey = (raw: string): Result.Result<Presented, GatewayError> =>
  wellFormed(keyPrefix, raw) ? Result.succeed({ _tag: "GatewayKey", raw }) : Result.fail(malformed)

export const refusal = (code: keyof typeof refusals): GatewayError =>
  new GatewayError({ code, message: refusals[code] })
