import { Data } from "effect"

/**
 * - `unverifiable`: the token is not signed by a key of the identity provider with an accepted algorithm.
 * - `keys_unavailable`: the keys of the identity provider cannot be loaded now.
 * - `wrong_issuer`, `wrong_audience`, `invalid_time`, `expired`: its claims, or the discovery document's issuer.
 */
export type TokenFault =
  | "unverifiable"
  | "keys_unavailable"
  | "wrong_issuer"
  | "wrong_audience"
  | "invalid_time"
  | "expired"

export class TokenRefused extends Data.TaggedError("TokenRefused")<{ readonly fault: TokenFault }> {}
