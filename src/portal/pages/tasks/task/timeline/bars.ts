import type { Attempt, Outcome } from "../../attempts/attempts.ts"
import type { Span } from "./rows.ts"

/** What is drawn at one place of a row: an attempt, or several that are too close to be told apart. */
export interface Bar {
  readonly id: string
  readonly kind: "attempt" | "wait"
  /** Pixels. */
  readonly left: number
  readonly width: number
  readonly outcome: Outcome
  readonly count: number
  readonly attempt: Attempt
}

/** Narrower bars could be neither seen nor hit. */
const least = 4

/** The one that a merged bar shows: what has failed must not be hidden. */
const order: ReadonlyArray<Outcome> = ["done", "unknown", "handed_over", "cancelled", "running", "retried", "dead"]

/** Returns true if a merged bar goes on to show the attempt that it showed. The next attempt of a task settles a retry. */
const isShownStill = (one: Attempt, other: Attempt): boolean =>
  (one.outcome !== "retried" || one.taskId !== other.taskId) &&
  order.indexOf(one.outcome) >= order.indexOf(other.outcome)

/** The bars of a row within a span. However many attempts there are, there are no more bars than fit. */
export const barsOf = (
  attempts: ReadonlyArray<Attempt>,
  { from, to }: Span,
  pixels: number,
  now: number
): ReadonlyArray<Bar> => {
  const scale = pixels / (to - from)
  const bars: Array<Bar> = []
  let isClose = false
  for (const attempt of attempts) {
    const { outcome, retry, start } = attempt
    const end = attempt.end ?? (outcome === "running" ? now : start)
    const last = Math.max(end, retry?.until ?? 0)
    if (last < from || start > to) continue
    const left = (start - from) * scale
    const width = Math.max(least, (end - start) * scale)
    const before = bars.at(-1)
    isClose = before !== undefined && left < before.left + Math.max(before.width, least)
    if (isClose && before !== undefined) {
      const shown = isShownStill(before.attempt, attempt) ? before.attempt : attempt
      bars[bars.length - 1] = {
        ...before,
        kind: "attempt",
        width: Math.max(before.width, left + width - before.left),
        outcome: shown.outcome,
        count: before.count + 1,
        attempt: shown
      }
      continue
    }
    if (retry !== undefined) {
      const waitLeft = (retry.from - from) * scale
      const waitEnd = ((retry.until ?? Math.max(now, retry.from)) - from) * scale
      if (waitEnd - waitLeft > least)
        bars.push({ id: retry.id, kind: "wait", left: waitLeft, width: waitEnd - waitLeft, outcome, count: 1, attempt })
    }
    bars.push({ id: attempt.id, kind: "attempt", left, width, outcome, count: 1, attempt })
  }
  return bars
}

/** Even times of a span, for its axis. */
export const ticksOf = ({ from, to }: Span, most: number): ReadonlyArray<number> => {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500].concat(
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400].map((s) => s * 1_000)
  )
  const step = steps.find((one) => (to - from) / one <= most) ?? (to - from) / most
  const first = Math.ceil(from / step) * step
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, place) => first + place * step)
}
