/**
 * What one caller (a key, or an address that sends no key) may hold of what all share: a quarter, so that no three of
 * them can take it from the others.
 */
export const of = (total: number): number => Math.max(1, Math.floor(total / 4))

/**
 * The caller at an address. Of IPv6 it is the network: whoever has one address there has all 2^64 of it. IPv4 may be
 * written as IPv6.
 */
export const callerAt = (address: string): string => {
  if (!address.includes(":") || address.toLowerCase().startsWith("::ffff:")) return address
  const [before = "", after] = address.split("::")
  const groups = before === "" ? [] : before.split(":")
  const behind = after === undefined || after === "" ? [] : after.split(":")
  const zeros = after === undefined ? 0 : Math.max(0, 8 - groups.length - behind.length)
  return [...groups, ...Array.from({ length: zeros }, () => "0"), ...behind].slice(0, 4).join(":")
}
