import { useEffect, useEffectEvent, useRef, useState } from "react"
import { call } from "../../../api/control.ts"
import { type Digest, type LiveEvent, useLive } from "../../../api/live.ts"
import type { UsageFilters } from "../../../shared/usage/fields.ts"
import { eventsPath, type UsageRow } from "../../../shared/usage/useUsageEvents.ts"
import { matcherOf, rowOf } from "./liveRow.ts"
import { arrive, emptyTail, record, release, type Tail } from "./tail.ts"

interface Options {
  readonly filters: UsageFilters
  /** False for a range that has ended, and for another order than that of time. */
  readonly isOn: boolean
  /** Rows that the list has already. */
  readonly list: ReadonlyArray<UsageRow>
  /** The connection has lost something: the list is read again. */
  readonly onReset: () => void
}

const none: Digest = { count: 0, latest: [] }

/** Records are written a second or two after a request has ended. */
const recordsEveryMs = 2_000
const recordsAtOnce = 100

/** Follows the requests that end. The live feed describes the latest; their records then say the rest. */
export const useTail = ({ filters, isOn, list, onReset }: Options) => {
  const [tail, setTail] = useState<Tail>(emptyTail)
  const held = useRef(false)
  const matches = matcherOf(filters)
  const filterText = JSON.stringify(filters)

  // biome-ignore lint/correctness/useExhaustiveDependencies: another filter begins anew
  useEffect(() => setTail(emptyTail), [filterText, isOn])

  const add = (rows: ReadonlyArray<UsageRow>, undescribed: number) => {
    const known = new Set(list.map(({ request_id }) => request_id))
    setTail((before) => arrive(before, { rows, undescribed, isHeld: held.current, known }))
  }

  const readRecords = useEffectEvent(async (signal: AbortSignal) => {
    const { rows } = await call("GET", eventsPath, { query: { ...filters, limit: recordsAtOnce } }, { signal })
    if (signal.aborted) return
    setTail((before) => record(before, rows))
    if (matches === undefined) add(rows, 0)
  })

  const wanted = useRecords(readRecords, filterText)

  const hear = ({ requests }: LiveEvent) => {
    if (!isOn || requests === undefined) return
    const { ended = none, refused = none } = requests
    const count = ended.count + refused.count
    if (count === 0) return
    if (matches !== undefined) {
      const described = [...ended.latest, ...refused.latest].flatMap((detail) => rowOf(detail) ?? [])
      add(described.sort(byEnd).filter(matches), count - described.length)
    }
    wanted()
  }
  useLive(hear, () => {
    setTail(emptyTail)
    onReset()
  })

  return {
    tail: isOn ? tail : emptyTail,
    /** Call it with true while the reader is at work with the rows. */
    hold: (isHeld: boolean) => {
      held.current = isHeld
      if (!isHeld) setTail(release)
    },
    release: () => setTail(release)
  }
}

const endOf = ({ created_at, latency_ms }: UsageRow): number => Date.parse(created_at) + latency_ms
const byEnd = (a: UsageRow, b: UsageRow): number => endOf(b) - endOf(a)

/** Reads the records so long after something has happened, and never before the last answer has arrived. */
const useRecords = (read: (signal: AbortSignal) => Promise<void>, filterText: string): (() => void) => {
  const timer = useRef<number>(undefined)
  const isAgain = useRef(false)
  const abort = useRef(new AbortController())
  const run = useEffectEvent(read)

  const start = () => {
    if (timer.current !== undefined) {
      isAgain.current = true
      return
    }
    timer.current = window.setTimeout(async () => {
      const { signal } = abort.current
      // a failure is that of the list, which shows it
      await run(signal).catch(() => {})
      if (signal.aborted) return
      timer.current = undefined
      if (!isAgain.current) return
      isAgain.current = false
      start()
    }, recordsEveryMs)
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: answers to other filters come too late
  useEffect(() => {
    abort.current = new AbortController()
    return () => {
      abort.current.abort()
      window.clearTimeout(timer.current)
      timer.current = undefined
    }
  }, [filterText])
  return start
}
