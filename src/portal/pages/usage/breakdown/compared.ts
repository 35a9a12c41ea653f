import { type Range, rangeOf } from "../../../address/range.ts"
import { decimalText } from "../../../shared/words/format.ts"

const dayMs = 86_400_000

/** With what the range is compared: the period before, the same a week or 30 days ago, or a range of its own. */
export const comparisons = [
  { value: "previous", label: "the period before" },
  { value: "week", label: "a week before" },
  { value: "month", label: "30 days before" },
  { value: "custom", label: "another range …" }
] as const

const movedBy = ({ from, to }: Range, ms: number): Range => ({
  text: "",
  isRelative: false,
  from: new Date(from.getTime() - ms),
  to: new Date(to.getTime() - ms)
})

export const comparedRange = (range: Range, compare: string | undefined): Range => {
  if (compare === "week") return movedBy(range, 7 * dayMs)
  if (compare === "month") return movedBy(range, 30 * dayMs)
  if (compare?.includes("..")) {
    const custom = rangeOf(compare, range.to.getTime())
    if (!custom.isRelative) return custom
  }
  return movedBy(range, range.to.getTime() - range.from.getTime())
}

/** `+12 %`, `−3 %`, `new`, or nothing where there is nothing to compare. */
export const changeText = (now: number, before: number | undefined): string => {
  if (before === undefined) return "–"
  if (before === 0) return now === 0 ? "–" : "new"
  const percent = ((now - before) / before) * 100
  const text = decimalText(Math.abs(percent), Math.abs(percent) < 10 ? 1 : 0)
  return percent === 0 ? "0 %" : `${percent > 0 ? "+" : "−"}${text} %`
}
