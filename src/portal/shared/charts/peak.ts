import { clockText, dayText } from "../words/format.ts"
import type { Series, TimePoint } from "./series.ts"

export const totalOf = ({ values }: TimePoint, series: ReadonlyArray<Series>): number =>
  series.reduce((sum, { key }) => sum + (values[key] ?? 0), 0)

const dayMs = 86_400_000

/** "Peak 412 at 26 Nov 14:03; 12,304 in all." */
export const peakSentence = (
  points: ReadonlyArray<TimePoint>,
  series: ReadonlyArray<Series>,
  format: (value: number) => string
): string => {
  const [first] = points
  if (first === undefined) return "Nothing in this range."
  const peak = points.reduce((most, point) => (totalOf(point, series) > totalOf(most, series) ? point : most), first)
  const height = totalOf(peak, series)
  if (height === 0) return "Nothing in this range."
  const isDaily = points.every(({ at }) => at % dayMs === 0)
  return `Peak ${format(height)} ${isDaily ? `on ${dayText(new Date(peak.at))}` : `at ${clockText(new Date(peak.at), false)}`}.`
}
