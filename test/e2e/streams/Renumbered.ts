/**
 * Numbers the placeholders of each kind in the order of this walk. Two answers whose texts came in different orders are
 * then equal if the same values have the same placeholders.
 */
export const renumbered = (value: unknown): unknown => {
  const numbers = new Map<string, string>()
  const counts = new Map<string, number>()
  const renumber = (placeholder: string, kind: string): string => {
    const known = numbers.get(placeholder)
    if (known !== undefined) return known
    const count = (counts.get(kind) ?? 0) + 1
    counts.set(kind, count)
    numbers.set(placeholder, `[${kind}_${count}]`)
    return `[${kind}_${count}]`
  }
  const renumberAll = (text: string): string => text.replaceAll(/\[([A-Z]+)_\d+\]/g, renumber)
  const walk = (value: unknown): unknown =>
    typeof value === "string"
      ? renumberAll(value)
      : Array.isArray(value)
        ? value.map(walk)
        : typeof value === "object" && value !== null
          ? Object.fromEntries(
              Object.entries(value)
                .sort(([a], [b]) => (a < b ? -1 : 1))
                .map(([key, member]) => [renumberAll(key), walk(member)])
            )
          : value
  return walk(value)
}
