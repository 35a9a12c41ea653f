import { shownText } from "../foreign/marks.ts"
import { bucketText, dayText } from "../words/format.ts"
import type { Series, TimePoint } from "./series.ts"

export const totalOf = ({ values }: TimePoint, series: ReadonlyArray<Series>): number =>
  series.reduce((sum, { key }) => sum + (values[key] ?? 0), 0)

const dayMs = 86_400_000

const highestOf = ({ values }: TimePoint, series: ReadonlyArray<Series>): number =>
  Math.max(0, ...series.map(({ key }) => values[key] ?? 0))

interface Drawn {
  readonly points: ReadonlyArray<TimePoint>
  readonly series: ReadonlyArray<Series>
  readonly format: (value: number) => string
  readonly bucketMs: number
}

/** "Peak 412 at 26 Nov, 14:03.": of the sum of all series, or of the highest one where they do not add up. */
export const peakSentence = ({ bucketMs, format, points, series }: Drawn, adds: boolean, utc: boolean): string => {
  const heightOf = adds ? totalOf : highestOf
  const [first] = points
  if (first === undefined) return "Nothing in this range."
  const peak = points.reduce((most, point) => (heightOf(point, series) > heightOf(most, series) ? point : most), first)
  const height = heightOf(peak, series)
  if (height === 0) return "Nothing in this range."
  const isDaily = points.every(({ at }) => at % dayMs === 0)
  return `Peak ${format(height)} ${isDaily ? `on ${dayText(new Date(peak.at))}` : `at ${bucketText(new Date(peak.at), bucketMs, utc)}`}.`
}

/** "14:03:09: successful 12/s, refused 1/s." */
export const pointSentence = (
  { at, values }: TimePoint,
  { bucketMs, format, series }: Omit<Drawn, "points">,
  utc: boolean
): string => {
  const texts = series.map(({ key, label }) => {
    const value = values[key]
    return `${shownText(label)} ${value === null || value === undefined ? "–" : format(value)}`
  })
  return `${bucketText(new Date(at), bucketMs, utc)}: ${texts.join(", ")}.`
}
