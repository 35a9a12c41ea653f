import { Clock, Effect } from "effect"

/** The sign-ins of one token or key in a minute. Each is an event in the one chain of the audit log. */
export const maxPerMinute = 10

const windowMs = 60_000
const maxOwners = 10_000

/** Counts the sign-ins of this process. Returns how many seconds `owner` has to wait, or 0 after it has counted one. */
export const make = (): ((owner: string) => Effect.Effect<number>) => {
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
      if (window.count >= maxPerMinute) return Math.ceil((window.startsAt + windowMs - now) / 1000)
      window.count++
      return 0
    })
}
