import type { ResponseOf } from "../../../api/Endpoints.ts"

type Priced = ResponseOf<"GET", "/admin-ui/v1/me/models">["priced"]
type Buckets = ResponseOf<"GET", "/admin-ui/v1/me/usage">["buckets"]

export interface ModelRow {
  readonly model: string
  /** In dollars for a million tokens. `undefined`: the model has no price. */
  readonly input: number | undefined
  readonly output: number | undefined
  readonly requests: number
  readonly tokens: number
  readonly spent: number
}

/** Records have these words in place of a model that a refused request did not name, or that nobody may call. */
const notModels: ReadonlySet<string> = new Set(["unknown", "other"])

/** The models with a name of their own and those that were used, the most expensive use first. */
export const modelRows = (names: ReadonlyArray<string>, priced: Priced, buckets: Buckets): ReadonlyArray<ModelRow> => {
  const prices = new Map(priced.map((price) => [price.model, price]))
  const rows = new Map<string, ModelRow>()
  const rowOf = (model: string): ModelRow =>
    rows.get(model) ?? {
      model,
      input: prices.get(model)?.input_usd_per_million,
      output: prices.get(model)?.output_usd_per_million,
      requests: 0,
      tokens: 0,
      spent: 0
    }
  for (const name of names) rows.set(name, rowOf(name))
  for (const { display_name, name, summary } of buckets) {
    const model = display_name || name
    if (!model || (notModels.has(model) && !names.includes(model))) continue
    const row = rowOf(model)
    rows.set(model, {
      ...row,
      requests: row.requests + summary.request_count,
      tokens: row.tokens + summary.total_tokens,
      spent: row.spent + summary.estimated_cost_usd
    })
  }
  return [...rows.values()].sort((a, b) => b.spent - a.spent || b.requests - a.requests || (a.model < b.model ? -1 : 1))
}
