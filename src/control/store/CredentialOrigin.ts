import { Effect, Schema } from "effect"
import { originOf } from "../../policy/routes/StoredCredential.ts"
import { computedRows } from "./Rows.ts"

interface StoredCredential {
  readonly configured: boolean
  readonly address: string | null
  readonly origin: string | null
}

export interface CredentialChange {
  /** `undefined` if the row is new. */
  readonly before: StoredCredential | undefined
  /** `undefined` keeps the address, `null` removes it. */
  readonly address: string | null | undefined
  /** The encrypted secret. `undefined` keeps the stored secret, `null` removes it. */
  readonly sealed: string | null | undefined
}

interface CredentialChangeOutcome {
  /** `undefined` if secret and origin do not change. */
  readonly stored: { readonly sealed: string | null; readonly credential_origin: string | null } | undefined
  readonly cleared: boolean
}

/**
 * A secret is sent only to the origin for which it was stored. If the address moves to another origin without a new
 * secret, the stored secret is removed. Otherwise an operator could send the secret to a server of their own.
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

const origins = computedRows(Schema.Struct({ credential_origin: Schema.NullOr(Schema.String) }))

/** Adds the credential's origin to `row`, because API objects lack this field. `statement` selects the origin. */
export const stored = <E, R>(
  statement: Effect.Effect<ReadonlyArray<unknown>, E, R>,
  row: Omit<StoredCredential, "origin">
) =>
  Effect.map(
    origins.only(statement),
    ({ credential_origin }): StoredCredential => ({ ...row, origin: credential_origin })
  )
