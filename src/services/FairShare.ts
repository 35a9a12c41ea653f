/** The most that one caller (a key, or an address that sends no key) ever holds of what all share: a quarter. */
export const maximum = (total: number): number => Math.max(1, Math.floor(total / 4))

/**
 * What one caller may hold where others hold `others` of it: a quarter, and no more than half of what they leave, but for
 * a sixteenth that is kept for callers who hold little. Four callers with a quarter each would leave nothing to a fifth,
 * and halves alone nothing to a twelfth; of 4,096 places it takes a hundred callers to leave none.
 */
export const allowance = (total: number, others: number): number => {
  const free = total - others
  const reserved = total >> 4
  const minimum = free > reserved >> 2 ? Math.min(8, total >> 5) : 1
  return Math.min(maximum(total), Math.max(1, minimum, (free - reserved) >> 1))
}

/**
 * The caller at an address. Of IPv6 it is the network: whoever has one address there has all 2^64 of it. IPv4 may be
 * written as IPv6.
 */
export const callerOfAddress = (address: string): string => {
  if (!address.includes(":") || address.toLowerCase().startsWith("::ffff:")) return address
  const [before = "", after] = address.split("::")
  const groups = before === "" ? [] : before.split(":")
  const tailGroups = after === undefined || after === "" ? [] : after.split(":")
  const zeros = after === undefined ? 0 : Math.max(0, 8 - groups.length - tailGroups.length)
  return [...groups, ...Array.from({ length: zeros }, () => "0"), ...tailGroups].slice(0, 4).join(":")
}
