/** One caller may hold at most a quarter of a shared resource. A caller is a key, or an address without a key. */
export const maximum = (total: number): number => Math.max(1, Math.floor(total / 4))

/**
 * Returns how much one caller may hold while other callers hold `others`. This is at most a quarter of `total`. It is
 * also at most half of the free amount, after a sixteenth of `total` is reserved for callers who hold little. Quarters
 * alone would leave nothing for a fifth caller. Halves alone would leave nothing for a twelfth caller. This formula
 * serves 96 callers if `total` is 4,096.
 */
export const allowance = (total: number, others: number): number => {
  const free = total - others
  const reserved = total >> 4
  const minimum = free > reserved >> 2 ? Math.min(8, total >> 5) : 1
  return Math.min(maximum(total), Math.max(1, minimum, (free - reserved) >> 1))
}

/**
 * Returns the identity of the caller at an address. For IPv6, this is the /64 network, because one host can use every
 * address in it. An IPv4 address may be in IPv6 form.
 */
export const callerOfAddress = (address: string): string => {
  if (!address.includes(":") || address.toLowerCase().startsWith("::ffff:")) return address
  const [head = "", tail] = address.split("::")
  const groups = head === "" ? [] : head.split(":")
  const tailGroups = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - tailGroups.length)
  return [...groups, ...Array.from({ length: zeros }, () => "0"), ...tailGroups].slice(0, 4).join(":")
}
