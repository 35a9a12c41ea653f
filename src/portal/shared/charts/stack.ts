import type { Series, TimePoint } from "./series.ts"

/**
 * Leaves out where a series of a stack is zero. Its edge would lie on the edge of the series below and hide it, so that a chart
 * without one error would be outlined in the colour of errors. The lowest series has nothing below, and stays. A point need
 * not have all series: what it lacks is zero.
 */
export const withGapsAtZero = (
  points: ReadonlyArray<TimePoint>,
  [lowest, ...others]: ReadonlyArray<Series>
): ReadonlyArray<TimePoint> => {
  const isZero = (place: number, key: string) => (points[place]?.values[key] ?? 0) === 0
  // the neighbours of a value stay: its area begins and ends there
  const isDrawn = (place: number, key: string) =>
    !isZero(place - 1, key) || !isZero(place, key) || !isZero(place + 1, key)
  return points.map(({ at, values }, place) => ({
    at,
    values: {
      ...(lowest !== undefined && { [lowest.key]: values[lowest.key] ?? 0 }),
      ...Object.fromEntries(others.map(({ key }) => [key, isDrawn(place, key) ? (values[key] ?? 0) : null]))
    }
  }))
}
