import { originOf } from "../../policy/routes/StoredCredential.ts"

export interface CredentialChange {
  /** The current row; `undefined` for a new one. */
  readonly before:
    | {
        readonly configured: boolean
        readonly address: string | null
        readonly origin: string | null
      }
    | undefined
  /** `undefined` keeps the address, `null` removes it. */
  readonly address: string | null | undefined
  /** The sealed secret. `undefined` keeps it, `null` removes it. */
  readonly sealed: string | null | undefined
}

export interface CredentialChangeOutcome {
  /** `undefined` keeps the secret and its origin. */
  readonly stored: { readonly sealed: string | null; readonly credential_origin: string | null } | undefined
  /** The secret was removed because the address moved to another origin and no new secret came with it. */
  readonly cleared: boolean
}

/**
 * Decides what a change does to the secret. A secret belongs to the origin that it was stored for. If the address moves
 * to another origin and no new secret comes with it, the secret is removed; otherwise whoever sets the address could
 * read the secret there.
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
