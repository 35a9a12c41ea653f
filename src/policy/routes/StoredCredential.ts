import { Option, type Redacted } from "effect"

/** The secret of a database row. An `Unreadable` secret cannot be decrypted. It has no fallback. */
export type StoredSecret =
  | { readonly _tag: "Missing" }
  | { readonly _tag: "Unreadable" }
  | { readonly _tag: "Present"; readonly credential: Redacted.Redacted }

/** A credential and the origin for which it was stored. The origin is `null` if the row had no address then. */
export interface BoundCredential {
  readonly secret: StoredSecret
  readonly origin: string | null
}

/** The credential for one address. `OtherOrigin`: the stored credential belongs to another address. */
export type StoredCredential = StoredSecret | { readonly _tag: "OtherOrigin" }

export const missing: StoredSecret = { _tag: "Missing" }
export const unbound: BoundCredential = { secret: missing, origin: null }

export const ofEnvironment = (key: Option.Option<Redacted.Redacted>, upstreamOrigin: string): BoundCredential => ({
  secret: Option.match(key, {
    onNone: () => missing,
    onSome: (credential): StoredSecret => ({ _tag: "Present", credential })
  }),
  origin: upstreamOrigin
})

export const originOf = (address: string): string => new URL(address).origin

/** Checks a secret before it is sent. If an operator changes an address, the old credential is not sent there. */
export const credentialFor = (origin: string, bound: BoundCredential): StoredCredential =>
  bound.secret._tag === "Missing" || bound.origin === origin ? bound.secret : { _tag: "OtherOrigin" }

/**
 * The place of the credential that decides, or -1. A credential that cannot be used ends the search, because the next one
 * might grant more than the operator intended.
 */
export const placeOfDeciding = (order: ReadonlyArray<BoundCredential>): number =>
  order.findIndex(({ secret }) => secret._tag !== "Missing")

export const resolve = (order: ReadonlyArray<BoundCredential>, origin: string): StoredCredential => {
  const deciding = order[placeOfDeciding(order)]
  return deciding === undefined ? missing : credentialFor(origin, deciding)
}
