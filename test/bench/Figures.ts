/** What is measured, in the order of the table. */
export const metrics = {
  rate1: { title: "requests/s at 1 connection", digits: 0 },
  rate32: { title: "requests/s at 32 connections", digits: 0 },
  rate64: { title: "requests/s at 64 connections", digits: 0 },
  cpu: { title: "processor time per request, µs", digits: 0 },
  p50: { title: "p50 at 1 connection, ms", digits: 3 },
  p99: { title: "p99 at 1 connection, ms", digits: 3 },
  addedP50: { title: "**added p50**, ms", digits: 3 },
  addedP99: { title: "**added p99**, ms", digits: 3 },
  slowP50: { title: "p50 at 64 connections, upstream of 20 ms", digits: 1 },
  slowP99: { title: "p99 at 64 connections, upstream of 20 ms", digits: 1 },
  firstByteP50: { title: "time to first token, p50, ms", digits: 3 },
  firstByteP99: { title: "time to first token, p99, ms", digits: 3 },
  chunk: { title: "unpaced stream: time per chunk, µs", digits: 1 },
  chunkCpu: { title: "unpaced stream: processor time per chunk, µs", digits: 1 },
  gapP50: { title: "16 paced streams: gap between chunks, p50, ms", digits: 2 },
  gapP99: { title: "16 paced streams: gap between chunks, p99, ms", digits: 2 },
  crowdWhole: { title: "512 paced streams: whole", digits: 0 },
  crowdAtOnce: { title: "512 paced streams: at once", digits: 0 },
  crowdFirstByteP99: { title: "512 paced streams: time to first token, p99, ms", digits: 1 },
  crowdGapP99: { title: "512 paced streams: longest gap of a stream, p99, ms", digits: 1 },
  crowdCpu: { title: "512 paced streams: processor time per chunk, µs", digits: 1 },
  memoryBefore: { title: "resident memory before, MiB", digits: 0 },
  memoryAfter: { title: "resident memory after, MiB", digits: 0 },
  memoryPeak: { title: "resident memory at most, MiB", digits: 0 },
  failed: { title: "failed requests and streams", digits: 0 }
} as const
export type Metric = keyof typeof metrics

/** Samples of each metric, one for each round. */
export class Figures<M extends string = Metric> {
  readonly #samples = new Map<M, Array<number>>()
  /** The first reason of a failure. */
  problem: string | undefined

  add(metric: M, value: number): void {
    const samples = this.#samples.get(metric)
    if (samples === undefined) this.#samples.set(metric, [value])
    else samples.push(value)
  }

  of(metric: M): ReadonlyArray<number> {
    return this.#samples.get(metric) ?? []
  }
}
