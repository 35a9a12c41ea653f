/**
 * Durations are counted in buckets whose bounds grow by a constant factor, as DDSketch does. Such counts merge by
 * addition, so quantiles of any group of minutes are as exact as those of one. SQL counts them, because the sums are
 * made from the stored records without passing through this process; no library for sketches does that.
 */
export const relativeError = 0.02

export const quantileNames = ["p50", "p90", "p95", "p99"] as const
export type QuantileName = (typeof quantileNames)[number]

/** The durations that are counted, and their columns in `usage_events` and `usage_series`. */
export const measures = {
  latency_ms: "latency",
  first_byte_ms: "first_byte",
  gateway_ms: "gateway",
  upstream_ms: "upstream"
} as const

const growth = (1 + relativeError) / (1 - relativeError)

/** SQL: the bucket of a duration in milliseconds. Durations below one millisecond are bucket 0. */
export const bucketOf = (column: string): string =>
  `CASE WHEN ${column} < 1 THEN 0 ELSE 1 + ceil(ln(${column}::double precision) / ${Math.log(growth)} - 1e-9)::integer END`

/** Returns the duration that differs least from all durations of a bucket, relative to each. */
export const durationOf = (bucket: number): number => (bucket === 0 ? 0 : (2 * growth ** (bucket - 1)) / (growth + 1))

/** SQL: a bucket and its count as one number. `numberOf` and `countOf` take it apart. */
export const packed = (bucket: string, count: string): string => `(${bucket}::bigint << 40) | ${count}`
export const numberOf = (element: string): string => `(${element} >> 40)::integer`
export const countOf = (element: string): string => `${element} & ((1::bigint << 40) - 1)`

/** SQL: the smallest bucket below whose upper bound lies the given share of all durations. */
export const quantileSql = (name: QuantileName): string =>
  `min(bucket) FILTER (WHERE upto >= total * ${Number(name.slice(1)) / 100})`
