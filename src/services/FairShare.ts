/** Returns the most that one caller (a key, or an address without a key) may hold of a shared resource: a quarter. */
export const maximum = (total: number): number => Math.max(1, Math.floor(total / 4))

/**
 * The amount that one caller may hold while other callers hold `others`: at most a quarter, and at most half of what is
 * free after a sixteenth is reserved for callers who hold little. Quarters alone would leave nothing to a fifth caller,
 * and halves alone nothing to a twelfth; of 4,096 units a hundred callers together take everything.
 */
export const allowance = (total: number, others: number): number => {
  const free = total - others
  const reserved = total >> 4
  const minimum = free > reserved >> 2 ? Math.min(8, total >> 5) : 1
  return Math.min(maximum(total), Math.max(1, minimum, (free - reserved) >> 1))
}

/**
 * Identifies the caller at an address. IPv6 callers are identified by their /64 network, because one host can use every
 * address in it. IPv4 addresses may be written in IPv6 form.
 */
export const callerOfAddress = (address: string): string => {
  if (!address.includes(":") || address.toLowerCase().startsWith("::ffff:")) return address
  const [head = "", tail] = address.split("::")
  const groups = head === "" ? [] : head.split(":")
  const tailGroups = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - tailGroups.length)
  return [...groups, ...Array.from({ length: zeros }, () => "0"), ...tailGroups].slice(0, 4).join(":")
}
