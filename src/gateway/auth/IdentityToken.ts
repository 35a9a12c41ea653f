import { Option, Result } from "effect"
import * as Headers from "../../http/Headers.ts"
import * as SignedToken from "../../identity/SignedToken.ts"
import { GatewayError } from "../GatewayError.ts"

const scheme = "Bearer "

export const fromHeaders = (headers: Headers.RawHeaders): Result.Result<SignedToken.SignedToken, GatewayError> => {
  const authorization = Headers.get(headers, "authorization")
  if (authorization === undefined) return Result.fail(missing)
  const raw = authorization.startsWith(scheme) ? authorization.slice(scheme.length).trim() : ""
  return Option.match(SignedToken.parse(raw), {
    onNone: () => Result.fail(malformed),
    onSome: (token) => Result.succeed(token)
  })
}

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
