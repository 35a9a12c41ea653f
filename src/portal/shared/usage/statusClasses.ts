import type { Series } from "../charts/series.ts"
import type { Bucket } from "./buckets.ts"

/** The results of requests, as charts show them. */
export const classSeries: ReadonlyArray<Series> = [
  { key: "ok", label: "2xx and 3xx", color: "var(--series-3)" },
  { key: "limited", label: "429 and 402, limits", color: "var(--series-5)" },
  { key: "client", label: "other 4xx", color: "var(--series-2)" },
  { key: "server", label: "5xx", color: "var(--series-6)" }
]

const classOf = (code: number): string =>
  code < 400 ? "ok" : code === 429 || code === 402 ? "limited" : code < 500 ? "client" : "server"

/** Counts the requests of a bucket by the class of their status. Its rows are split by `code`. */
export const classValues = (rows: ReadonlyArray<Bucket>): Readonly<Record<string, number>> => {
  const values: Record<string, number> = { ok: 0, limited: 0, client: 0, server: 0 }
  for (const { name, summary } of rows) {
    const key = classOf(Number(name))
    values[key] = (values[key] ?? 0) + summary.request_count
  }
  return values
}
