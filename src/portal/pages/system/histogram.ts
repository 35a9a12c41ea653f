import type { ResponseOf } from "../../api/Endpoints.ts"

type Counted = ResponseOf<"GET", "/admin-ui/admin/usage/histogram">

export interface Bar {
  readonly fromMs: number
  /** `undefined`: there is no end. */
  readonly toMs: number | undefined
  readonly requests: number
  /** The requests of this bar and of those before. */
  readonly upTo: number
}

const steps = [1, 2, 5]
/** Those up to 50 ms are always there, so that the page does not move when the counts arrive. */
const leastBars = 6

const bounds = [1, 10, 100, 1_000, 10_000].flatMap((power) => steps.map((step) => step * power))

/** Adds up counts in bars that people can read, from the shortest to the longest that there is. None without requests. */
export const barsOf = (counted: Counted): ReadonlyArray<Bar> => {
  const sums = new Array<number>(bounds.length + 1).fill(0)
  for (const { ms, request_count } of counted) {
    // the server's durations differ by two per cent, so that those at a bound may be on its other side
    const at = bounds.findIndex((bound) => Math.round(ms) < bound)
    const place = at === -1 ? bounds.length : at
    sums[place] = (sums[place] ?? 0) + request_count
  }
  const last = sums.findLastIndex((requests) => requests > 0)
  if (last === -1) return []
  let upTo = 0
  return sums.slice(0, Math.max(leastBars, last + 1)).map((requests, place) => {
    upTo += requests
    return { fromMs: bounds[place - 1] ?? 0, toMs: bounds[place], requests, upTo }
  })
}
