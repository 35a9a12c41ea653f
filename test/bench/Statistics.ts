/** Plain functions on samples. */

const sorted = (values: ReadonlyArray<number>): ReadonlyArray<number> => values.toSorted((a, b) => a - b)

export const median = (values: ReadonlyArray<number>): number => {
  const ascending = sorted(values)
  const middle = Math.floor(ascending.length / 2)
  const upper = ascending[middle] ?? Number.NaN
  return ascending.length % 2 === 1 ? upper : ((ascending[middle - 1] ?? Number.NaN) + upper) / 2
}

/** The smallest value that at least `p` percent of the samples do not exceed. */
export const percentile = (values: ReadonlyArray<number>, p: number): number =>
  sorted(values)[Math.max(0, Math.ceil((p / 100) * values.length) - 1)] ?? Number.NaN

/** Half of the samples lie between them. */
export const quartiles = (values: ReadonlyArray<number>): readonly [lower: number, upper: number] => [
  percentile(values, 25),
  percentile(values, 75)
]

export const spread = (values: ReadonlyArray<number>): readonly [least: number, most: number] => [
  Math.min(...values),
  Math.max(...values)
]

/** Sample by sample: what was measured next to each other is compared with each other. */
export const paired = (
  a: ReadonlyArray<number>,
  b: ReadonlyArray<number>,
  combine: (a: number, b: number) => number
): ReadonlyArray<number> => a.flatMap((value, index) => (index < b.length ? [combine(value, b[index]!)] : []))

/** Slope of the straight line of least squares through `points`. */
export const slope = (points: ReadonlyArray<readonly [x: number, y: number]>): number => {
  const mean = (of: (point: readonly [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const meanX = mean(([x]) => x)
  const meanY = mean(([, y]) => y)
  const covariance = mean(([x, y]) => (x - meanX) * (y - meanY))
  const variance = mean(([x]) => (x - meanX) ** 2)
  return variance === 0 ? 0 : covariance / variance
}
