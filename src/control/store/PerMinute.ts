import { Clock, Effect } from "effect"

const windowMs = 60_000
const maxOwners = 10_000

/**
 * Counts what owners, such as keys, do in this process, of which each may do `most` in a minute. Returns how many seconds
 * `owner` has to wait, or 0 after it has counted one.
 */
export const make = (most: number): ((owner: string) => Effect.Effect<number>) => {
  const windows = new Map<string, { readonly startsAt: number; count: number }>()
  return (owner) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const window = windows.get(owner)
      if (window === undefined || window.startsAt + windowMs <= now) {
        windows.delete(owner)
        windows.set(owner, { startsAt: now, count: 1 })
        if (windows.size > maxOwners) windows.delete(windows.keys().next().value ?? "")
        return 0
      }
      if (window.count >= most) return Math.ceil((window.startsAt + windowMs - now) / 1000)
      window.count++
      return 0
    })
}
