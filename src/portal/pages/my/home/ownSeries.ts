import type { ResponseOf } from "../../../api/Endpoints.ts"
import type { Series, TimePoint } from "../../../shared/charts/series.ts"

type Bucket = ResponseOf<"GET", "/admin-ui/v1/me/usage">["buckets"][number]

const dayMs = 86_400_000

interface Charted {
  readonly series: ReadonlyArray<Series>
  readonly points: ReadonlyArray<TimePoint>
}

/** A point for every day from `from` to `to`, also for those without requests, and a series for each model. */
export const byDayAndModel = (
  buckets: ReadonlyArray<Bucket>,
  from: number,
  to: number,
  measure: (summary: Bucket["summary"]) => number
): Charted => {
  const totals = new Map<string, number>()
  const days = new Map<number, Record<string, number>>()
  for (let day = from - (from % dayMs); day <= to; day += dayMs) days.set(day, {})
  for (const { bucket, display_name, name, summary } of buckets) {
    // the key of a series is a path for the library of charts, where dots have a meaning
    const model = display_name || name || "other"
    const at = Date.parse(bucket)
    const values = days.get(at) ?? {}
    values[model] = (values[model] ?? 0) + measure(summary)
    days.set(at, values)
    totals.set(model, (totals.get(model) ?? 0) + measure(summary))
  }
  const models = [...totals]
    .filter(([, total]) => total > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([model]) => model)
  const keyOf = new Map(models.map((model, place) => [model, `m${place}`]))
  return {
    series: models.map((model) => ({ key: keyOf.get(model) ?? model, label: model })),
    points: [...days]
      .sort(([a], [b]) => a - b)
      .map(([at, values]) => ({
        at,
        values: Object.fromEntries(models.map((model) => [keyOf.get(model) ?? model, values[model] ?? 0]))
      }))
  }
}
