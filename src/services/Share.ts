/**
 * What one caller (a key, or an address that sends no key) may hold of what all share: a quarter, so that no three of
 * them can take it from the others.
 */
export const of = (total: number): number => Math.max(1, Math.floor(total / 4))
