import { useNavigate, useSearch } from "@tanstack/react-router"
import { useMemo } from "react"
import { useFollowedSearch } from "./FollowedAddress.tsx"
import { useShownNow } from "./shownTime.ts"

/** The ranges of the top bar, in minutes. */
export const ranges = { "15m": 15, "1h": 60, "6h": 360, "24h": 1_440, "7d": 10_080, "30d": 43_200 } as const
export type RangeName = keyof typeof ranges

const minuteMs = 60_000

export interface Range {
  /** As it is in the address: `24h` goes on with the time, `2026-11-01T00:00:00Z..2026-11-02T00:00:00Z` stays. */
  readonly text: string
  readonly from: Date
  readonly to: Date
  readonly isRelative: boolean
}

const isName = (text: string): text is RangeName => Object.hasOwn(ranges, text)

export const defaultRange: RangeName = "24h"

/** Relative ranges end with the current minute, so that pages which are drawn again in it ask nothing new. */
export const rangeOf = (text: string, now: number): Range => {
  const [start = "", end = ""] = text.split("..")
  const from = Date.parse(start)
  const to = Date.parse(end)
  if (from < to) return { text, from: new Date(from), to: new Date(to), isRelative: false }
  const name = isName(text) ? text : defaultRange
  const until = (Math.floor(now / minuteMs) + 1) * minuteMs
  return { text: name, from: new Date(until - ranges[name] * minuteMs), to: new Date(until), isRelative: true }
}

export const absoluteRange = (from: number, to: number): string =>
  `${new Date(from).toISOString()}..${new Date(to).toISOString()}`

/** The range one step back (-1) or forth (1). */
export const shifted = ({ from, to }: Range, steps: number): string => {
  const length = to.getTime() - from.getTime()
  return absoluteRange(from.getTime() + steps * length, to.getTime() + steps * length)
}

/** Returns the range of the top bar, which is the same on all pages, and what changes it. */
export const useRange = () => {
  const { range } = useFollowedSearch()
  return useRangeOf(typeof range === "string" ? range : defaultRange)
}

/** Returns what `useRange` does, for the frame around the page: it is never behind the address. */
export const useRangeOfFrame = () => useRangeOf(useSearch({ strict: false }).range ?? defaultRange)

const useRangeOf = (range: string) => {
  const navigate = useNavigate()
  const now = useShownNow()
  const current = useMemo(() => rangeOf(range, now), [range, now])
  const setRange = (text: string) =>
    void navigate({ to: ".", search: (before) => ({ ...before, range: text }), replace: true })
  return { range: current, setRange }
}
