import type { LookupAddress } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import { type AddressKind, type PrivateAddresses, refusedKind } from "./AddressRule.ts"
import type { NameLookups } from "./NameLookups.ts"

export interface AddressPolicy {
  readonly privateAddresses: PrivateAddresses
  /** Origins that the environment names. Their private addresses are always allowed. */
  readonly trustedOrigins: ReadonlyArray<string>
}

export const allowPrivateAddresses: AddressPolicy = { privateAddresses: "allow", trustedOrigins: [] }

/** A trusted origin may even be a listener of this process. */
export const isTrusted = ({ trustedOrigins }: AddressPolicy, origin: string): boolean => trustedOrigins.includes(origin)

export const privateAddressesOf = (addressPolicy: AddressPolicy, origin: string): PrivateAddresses =>
  isTrusted(addressPolicy, origin) ? "allow" : addressPolicy.privateAddresses

/** The host is a refused address, or its name resolves to refused addresses only. */
export class AddressRefused extends Error {
  readonly code = "ERR_ADDRESS_REFUSED"
  readonly kind: AddressKind
  readonly address: string

  constructor(address: string, kind: AddressKind) {
    super(`The gateway does not call the address ${address} (${kind})`)
    this.kind = kind
    this.address = address
  }
}

/** Checks a host that is an IP address, which no look-up would check. */
export const refusedLiteralHost = (host: string, privateAddresses: PrivateAddresses): AddressRefused | undefined => {
  const kind = isIP(host) === 0 ? undefined : refusedKind(host, privateAddresses)
  return kind === undefined ? undefined : new AddressRefused(host, kind)
}

/** The look-up of one socket. After `abandon` its callback is not called. */
export interface SocketLookup {
  readonly lookup: LookupFunction
  readonly abandon: () => void
}

/**
 * Resolves a name and drops refused addresses. Addresses are checked on every look-up, cached or not, and the socket
 * connects to the checked ones, so a name cannot resolve differently between check and connection.
 */
export const socketLookup = (names: NameLookups, privateAddresses: PrivateAddresses): SocketLookup => {
  let abandon = () => {}
  return {
    lookup: (host, options, callback) => {
      abandon = names.lookUp(host, (error, found) => {
        if (error !== null) return callback(error, "")
        const [first, ...others] = found.filter(({ address }) => refusedKind(address, privateAddresses) === undefined)
        if (first === undefined) return callback(allAddressesRefused(found, privateAddresses), "")
        if (options.all === true) callback(null, [first, ...others])
        else callback(null, first.address, first.family)
      })
    },
    abandon: () => abandon()
  }
}

const allAddressesRefused = (
  found: ReadonlyArray<LookupAddress>,
  privateAddresses: PrivateAddresses
): AddressRefused => {
  const address = found[0]?.address ?? ""
  return new AddressRefused(address, refusedKind(address, privateAddresses) ?? "not an address")
}
