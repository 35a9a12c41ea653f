import type { LookupAddress } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import { type AddressKind, type PrivateAddresses, refusedKind } from "./AddressRule.ts"
import type { NameLookups } from "./NameLookups.ts"

/** Whom the gateway calls. */
export interface AddressPolicy {
  readonly privateAddresses: PrivateAddresses
  /** Origins that the environment names: whoever sets it owns the machine, so their private addresses are called. */
  readonly trustedOrigins: ReadonlyArray<string>
}

export const allowPrivateAddresses: AddressPolicy = { privateAddresses: "allow", trustedOrigins: [] }

/** An origin of the environment may also be the process itself. */
export const isTrusted = ({ trustedOrigins }: AddressPolicy, origin: string): boolean => trustedOrigins.includes(origin)

/** What holds for one origin. */
export const privateAddressesOf = (addresses: AddressPolicy, origin: string): PrivateAddresses =>
  isTrusted(addresses, origin) ? "allow" : addresses.privateAddresses

/** The host is, or its name leads to, nothing but addresses that are not called. */
export class AddressRefused extends Error {
  readonly code = "ERR_ADDRESS_REFUSED"
  readonly kind: AddressKind
  readonly address: string

  constructor(address: string, kind: AddressKind) {
    super(`${address} (${kind}) is an address that the gateway does not call`)
    this.kind = kind
    this.address = address
  }
}

/** Judges a host that is an address itself: nobody looks it up. */
export const refusedLiteralHost = (host: string, privateAddresses: PrivateAddresses): AddressRefused | undefined => {
  const kind = isIP(host) === 0 ? undefined : refusedKind(host, privateAddresses)
  return kind === undefined ? undefined : new AddressRefused(host, kind)
}

/** The look-up of one socket. Nobody waits for it after `leave`. */
export interface SocketLookup {
  readonly lookup: LookupFunction
  readonly abandon: () => void
}

/**
 * The name's addresses, without those that are not called. They are judged each time, remembered or not, and the socket
 * goes to what is answered here, so a name cannot lead elsewhere between the check and the connection.
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
