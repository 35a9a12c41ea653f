import { useState } from "react"
import type { Span } from "./rows.ts"

/** Shorter spans say nothing. */
const leastMs = 5

/** Which part of the time is seen. Without a choice, it is all of it, also while that grows. */
export const useWindow = (all: Span) => {
  const [chosen, setChosen] = useState<Span>()
  const span = chosen ?? all
  const length = span.to - span.from
  const show = (from: number, to: number) => {
    const size = Math.min(all.to - all.from, Math.max(leastMs, to - from))
    const start = Math.min(Math.max(all.from, from), all.to - size)
    setChosen(size >= all.to - all.from ? undefined : { from: start, to: start + size })
  }
  return {
    span,
    isWhole: chosen === undefined,
    show,
    zoom: (factor: number, around = (span.from + span.to) / 2) =>
      show(around - (around - span.from) * factor, around + (span.to - around) * factor),
    pan: (share: number) => show(span.from + share * length, span.to + share * length),
    reset: () => setChosen(undefined),
    /** Moves so far that a time is seen. */
    reveal: (at: number) => {
      if (at < span.from || at > span.to) show(at - length / 2, at + length / 2)
    }
  }
}

export type Window = ReturnType<typeof useWindow>
