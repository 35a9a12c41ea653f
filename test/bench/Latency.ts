import type { RecordableHistogram } from "node:perf_hooks"

/** Histograms of Node count whole nanoseconds; everything else here is milliseconds. */

export const nanos = (ms: number): number => Math.max(1, Math.round(ms * 1e6))

export const ms = (histogram: RecordableHistogram, p: number): number => histogram.percentile(p) / 1e6
