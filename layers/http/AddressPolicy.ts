import type { LookupAddress } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import { type AddressKind, type PrivateAddresses, refusedKind } from "./AddressRule.ts"
import type { NameLookups } from "./NameLookups.ts"

export interface AddressPolicy {
  readonly privateAddresses: PrivateAddresses
  /** Origins from environment variables. Their private addresses are always allowed. */
  readonly trustedOrigins: ReadonlyArray<string>
}

export const allowPrivateAddresses: AddressPolicy = { privateAddresses: "allow", trustedOrigins: [] }

/** Requests to a trusted origin may even reach a listener of this process. */
export const isTrusted = ({ trustedOrigins }: AddressPolicy, origin: string): boolean => trustedOrigins.includes(origin)

export const privateAddressesOf = (addressPolicy: AddressPolicy, origin: string): PrivateAddresses =>
  isTrusted(addressPolicy, origin) ? "allow" : addressPolicy.privateAddresses

/** The host is a refused address, or a name that resolves only to refused addresses. */
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

/** Checks a host that is an IP address, because such a host is connected without a DNS look-up. */
export const refusedLiteralHost = (host: string, privateAddresses: PrivateAddresses): AddressRefused | undefined => {
  const kind = isIP(host) === 0 ? undefined : refusedKind(host, privateAddresses)
  return kind === undefined ? undefined : new AddressRefused(host, kind)
}

export interface SocketLookup {
  readonly lookup: LookupFunction
  readonly abandon: () => void
}

/**
 * Removes refused addresses from the result of a DNS look-up. The socket connects only to the checked addresses. This
 * prevents DNS rebinding, in which a name resolves to another address after the check.
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
