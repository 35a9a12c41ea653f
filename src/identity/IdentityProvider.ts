import type { Algorithm } from "../policy/AuthSettings.ts"

export interface IdentityProvider {
  readonly discoveryUrl: string
  readonly issuer: string
  /** Tokens must be meant for it. */
  readonly audience: string
  readonly algorithms: ReadonlyArray<Algorithm>
  /** The signing keys are fetched again after this time in milliseconds. */
  readonly keysTtlMs: number
}
