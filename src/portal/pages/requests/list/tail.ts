import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"
import { isLive } from "./liveRow.ts"

/** The rows that came since the list was read. All are newest first, and each request is in one of the lists once. */
export interface Tail {
  readonly shown: ReadonlyArray<UsageRow>
  /** These wait, because the reader is at work with the rows. */
  readonly waiting: ReadonlyArray<UsageRow>
  /** The number of requests that were too many to be shown one by one. */
  readonly leftOut: number
}

export const emptyTail: Tail = { shown: [], waiting: [], leftOut: 0 }

/** Older rows of the tail give way. They are in the list once it is read again. */
export const mostRows = 500

interface Arrival {
  /** Newest first. */
  readonly rows: ReadonlyArray<UsageRow>
  /** The feed counted these and did not describe them. */
  readonly undescribed: number
  readonly isHeld: boolean
  /** Requests that the list has already. */
  readonly known: ReadonlySet<string>
}

/** Adds what has just ended. */
export const arrive = (tail: Tail, { isHeld, known, rows, undescribed }: Arrival): Tail => {
  const seen = new Set([...tail.shown, ...tail.waiting].map(({ request_id }) => request_id))
  const fresh = rows.filter(({ request_id }) => {
    if (seen.has(request_id) || known.has(request_id)) return false
    seen.add(request_id)
    return true
  })
  if (fresh.length === 0 && undescribed === 0) return tail
  const next = isHeld
    ? { ...tail, waiting: [...fresh, ...tail.waiting] }
    : { ...tail, shown: [...fresh, ...tail.waiting, ...tail.shown], waiting: [] }
  return trimmed({ ...next, leftOut: tail.leftOut + undescribed })
}

const trimmed = ({ leftOut, shown, waiting }: Tail): Tail => ({
  shown: shown.slice(0, mostRows),
  waiting: waiting.slice(0, mostRows),
  leftOut: leftOut + Math.max(0, shown.length - mostRows) + Math.max(0, waiting.length - mostRows)
})

/** Shows what waited. */
export const release = (tail: Tail): Tail => trimmed({ ...tail, shown: [...tail.waiting, ...tail.shown], waiting: [] })

/** The records of requests take the places of what the feed said of them. */
export const record = (tail: Tail, stored: ReadonlyArray<UsageRow>): Tail => {
  const byRequest = new Map(stored.map((row) => [row.request_id, row]))
  const replaced = (rows: ReadonlyArray<UsageRow>) =>
    rows.some((row) => isLive(row) && byRequest.has(row.request_id))
      ? rows.map((row) => (isLive(row) ? (byRequest.get(row.request_id) ?? row) : row))
      : rows
  const [shown, waiting] = [replaced(tail.shown), replaced(tail.waiting)]
  return shown === tail.shown && waiting === tail.waiting ? tail : { ...tail, shown, waiting }
}

/** The tail and the list below it, each request once. */
export const joined = (tail: Tail, list: ReadonlyArray<UsageRow>): ReadonlyArray<UsageRow> => {
  if (tail.shown.length === 0) return list
  const shown = new Set(tail.shown.map(({ request_id }) => request_id))
  const waiting = new Set(tail.waiting.map(({ request_id }) => request_id))
  return [...tail.shown, ...list.filter(({ request_id }) => !shown.has(request_id) && !waiting.has(request_id))]
}
