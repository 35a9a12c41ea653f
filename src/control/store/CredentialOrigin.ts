import { originOf } from "../../policy/routes/StoredCredential.ts"

/** A change of a row that holds a secret for an address. */
export interface CredentialChange {
  /** The row as it is; `undefined` for a new one. */
  readonly before:
    | {
        readonly configured: boolean
        readonly address: string | null
        /** The origin that the secret was stored for. */
        readonly origin: string | null
      }
    | undefined
  /** `undefined` keeps the address, `null` removes it. */
  readonly address: string | null | undefined
  /** The sealed secret. `undefined` says nothing of it, `null` removes it. */
  readonly sealed: string | null | undefined
}

export interface CredentialChangeOutcome {
  /** `undefined` leaves the secret and its origin as they are. */
  readonly stored: { readonly sealed: string | null; readonly credential_origin: string | null } | undefined
  /** The secret was removed because the address moved to another origin without a new one. */
  readonly cleared: boolean
}

/**
 * What a change does to the secret. It belongs to the origin that it was stored for: where the address moves to another
 * one and no secret comes with it, the stored one is removed, or whoever may set an address could read it there.
 */
export const outcomeOf = ({ address, before, sealed }: CredentialChange): CredentialChangeOutcome => {
  const next = address === undefined ? (before?.address ?? null) : address
  if (sealed !== undefined) {
    const credential_origin = sealed === null || next === null ? null : originOf(next)
    return { stored: { sealed, credential_origin }, cleared: false }
  }
  const follows =
    address === undefined ||
    next === null ||
    before === undefined ||
    !before.configured ||
    originOf(next) === before.origin
  return follows ? unchanged : { stored: { sealed: null, credential_origin: null }, cleared: true }
}

const unchanged: CredentialChangeOutcome = { stored: undefined, cleared: false }
