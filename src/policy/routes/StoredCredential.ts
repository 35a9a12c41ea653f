import { Option, type Redacted } from "effect"

/** A secret of a row. `Unreadable`: there is one, and it cannot be opened; nothing stands in for it. */
export type StoredSecret =
  | { readonly _tag: "Missing" }
  | { readonly _tag: "Unreadable" }
  | { readonly _tag: "Present"; readonly credential: Redacted.Redacted }

/**
 * A credential together with the origin (scheme, host, port) that it was stored for. `null`: it was stored before its
 * row had an address.
 */
export interface BoundCredential {
  readonly secret: StoredSecret
  readonly origin: string | null
}

/** What may be sent to an address. `OtherOrigin`: there is a credential, and it belongs to another address. */
export type StoredCredential = StoredSecret | { readonly _tag: "OtherOrigin" }

export const missing: StoredSecret = { _tag: "Missing" }
export const unbound: BoundCredential = { secret: missing, origin: null }

/** UPSTREAM_SERVICE_KEY, which belongs to UPSTREAM_BASE_URL. */
export const ofEnvironment = (key: Option.Option<Redacted.Redacted>, upstreamOrigin: string): BoundCredential => ({
  secret: Option.match(key, {
    onNone: () => missing,
    onSome: (credential): StoredSecret => ({ _tag: "Present", credential })
  }),
  origin: upstreamOrigin
})

/** The origin of an address, in the one form in which origins are stored and compared. */
export const originOf = (address: string): string => new URL(address).origin

/**
 * The credential as far as it may be sent to `origin`. Every secret that leaves with a request passes here, so that no
 * change of an address takes a credential along, whoever writes the row.
 */
export const credentialFor = (origin: string, bound: BoundCredential): StoredCredential =>
  bound.secret._tag === "Missing" || bound.origin === origin ? bound.secret : { _tag: "OtherOrigin" }

/**
 * The first credential that there is, in the specification's order. One that cannot be read, or belongs to another
 * address, ends the search: the next one might open more than the operator meant to.
 */
export const resolve = (order: ReadonlyArray<BoundCredential>, origin: string): StoredCredential => {
  for (const bound of order) if (bound.secret._tag !== "Missing") return credentialFor(origin, bound)
  return missing
}
