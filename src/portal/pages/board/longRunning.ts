/** A task whose type has not ended on this worker yet is worth a look after five minutes. */
const unknownMs = 5 * 60_000
/** How many times as long as usual is long. Within half a minute nobody can do anything about it. */
const times = 3
const leastMs = 30_000

/** Whether a handler runs for longer than those of its type do, as far as its worker knows. */
export const isLong = (ageMs: number, usualMs: number | undefined): boolean =>
  ageMs > (usualMs === undefined ? unknownMs : Math.max(leastMs, times * usualMs))
