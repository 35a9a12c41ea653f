import { BlockList, isIP } from "node:net"

/** `GATEWAY_EGRESS_PRIVATE_ADDRESSES` decides whether requests may go to private and loopback addresses. */
export type PrivateAddresses = "allow" | "refuse"

export type AddressKind =
  | "cloud metadata"
  | "link-local"
  | "broadcast"
  | "multicast"
  | "loopback"
  | "unspecified"
  | "tunnel"
  | "private"
  | "a listener of this process"
  | "not an address"

/** If several ranges contain an address, the first one counts. */
const ranges: ReadonlyArray<readonly [kind: AddressKind, ...subnets: ReadonlyArray<string>]> = [
  ["cloud metadata", "169.254.169.254/32", "169.254.170.2/32", "100.100.100.200/32", "168.63.129.16/32"],
  ["cloud metadata", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128"],
  ["link-local", "169.254.0.0/16", "fe80::/10"],
  ["broadcast", "255.255.255.255/32"],
  ["multicast", "224.0.0.0/4", "ff00::/8"],
  ["loopback", "127.0.0.0/8", "::1/128"],
  // Linux treats all addresses in 0.0.0.0/8 as the machine itself.
  ["unspecified", "0.0.0.0/8", "::/128"],
  // A Teredo address contains its target IPv4 address only in obfuscated form.
  ["tunnel", "2001::/32"],
  // The remaining ranges that the public internet does not route.
  ["private", "10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"],
  ["private", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4"],
  ["private", "100::/64", "2001:db8::/32"]
]

const deploymentKinds: ReadonlySet<AddressKind> = new Set(["loopback", "private"])

/** Returns why the gateway must not call `ip`, or `undefined` if it may. */
export const refusedKind = (ip: string, privateAddresses: PrivateAddresses): AddressKind | undefined => {
  const kind = kindOf(ip)
  return privateAddresses === "allow" && kind !== undefined && deploymentKinds.has(kind) ? undefined : kind
}

const kindOf = (ip: string): AddressKind | undefined => {
  const family = isIP(ip)
  if (family === 0) return "not an address"
  const [address = ip] = ip.split("%", 1)
  if (family === 6 && localNat64.check(address, "ipv6")) {
    const kind = kindOf(embeddedIpv4(address))
    return kind === undefined || deploymentKinds.has(kind) ? "private" : kind
  }
  return blockLists.find(([, list]) => list.check(address, family === 4 ? "ipv4" : "ipv6"))?.[0]
}

/** The local NAT64 prefix (RFC 8215). The last four bytes are the IPv4 address. */
const localNat64 = new BlockList()
localNat64.addSubnet("64:ff9b:1::", 48, "ipv6")

const embeddedIpv4 = (address: string): string => {
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split(":")
  // `URL` writes an IPv6 address as hexadecimal groups. The group between two colons is empty.
  const octets = groups.slice(-2).flatMap((group) => [Number(`0x0${group}`) >> 8, Number(`0x0${group}`) & 255])
  return octets.join(".")
}

/**
 * Returns the IPv6 ranges that embed an IPv4 range (IPv4-compatible, SIIT, NAT64 and 6to4). `BlockList` itself handles
 * `::ffff:` addresses.
 */
const ipv6Embeddings = (net: string, bits: number): ReadonlyArray<readonly [net: string, bits: number]> => {
  const [a = 0, b = 0, c = 0, d = 0] = net.split(".").map(Number)
  const hex = [a * 256 + b, c * 256 + d].map((group) => group.toString(16)).join(":")
  return [
    [`::${net}`, 96 + bits],
    [`::ffff:0:${net}`, 96 + bits],
    [`64:ff9b::${net}`, 96 + bits],
    [`2002:${hex}::`, 16 + bits]
  ]
}

const blockLists = ranges.map(([kind, ...subnets]): readonly [AddressKind, BlockList] => {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [net = "", length = ""] = subnet.split("/")
    const bits = Number(length)
    if (isIP(net) === 4) {
      list.addSubnet(net, bits, "ipv4")
      for (const [carrier, carrierBits] of ipv6Embeddings(net, bits)) list.addSubnet(carrier, carrierBits, "ipv6")
    } else list.addSubnet(net, bits, "ipv6")
  }
  return [kind, list]
})
