/** A task whose type has not ended on this worker yet is worth a look after five minutes. */
const unknownMs = 5 * 60_000
/** A task runs for long after so many times its usual duration, but nobody can do anything about it within half a minute. */
const times = 3
const leastMs = 30_000

/** Returns whether a handler runs for longer than those of its type do, as far as its worker knows. */
export const isLong = (ageMs: number, usualMs: number | undefined): boolean =>
  ageMs > (usualMs === undefined ? unknownMs : Math.max(leastMs, times * usualMs))
