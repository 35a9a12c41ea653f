import type { ResponseOf } from "../../../api/Endpoints.ts"

type Models = ResponseOf<"GET", "/admin-ui/v1/me/models">
type Buckets = ResponseOf<"GET", "/admin-ui/v1/me/usage">["buckets"]

export interface ModelRow {
  readonly model: string
  /** In dollars for a million tokens. `undefined`: the model has no price. */
  readonly input: number | undefined
  readonly output: number | undefined
  /** The note of the price book, such as that long prompts cost more. */
  readonly note: string | null
  readonly requests: number
  readonly tokens: number
  readonly spent: number
}

/**
 * The models that the key may use, the most expensive use first. The sums also have models that it tried and may not
 * use, so that they add no rows.
 */
export const modelRows = (
  names: ReadonlyArray<string>,
  { priced, used }: Pick<Models, "priced" | "used">,
  buckets: Buckets
): ReadonlyArray<ModelRow> => {
  const prices = new Map([...used, ...priced].map((price) => [price.model, price]))
  const rows = new Map<string, ModelRow>()
  const rowOf = (model: string): ModelRow =>
    rows.get(model) ?? {
      model,
      input: prices.get(model)?.input_usd_per_million ?? undefined,
      output: prices.get(model)?.output_usd_per_million ?? undefined,
      note: prices.get(model)?.note ?? null,
      requests: 0,
      tokens: 0,
      spent: 0
    }
  for (const name of [...names, ...used.map(({ model }) => model)]) rows.set(name, rowOf(name))
  for (const { display_name, name, summary } of buckets) {
    const model = display_name || name
    const row = model === undefined ? undefined : rows.get(model)
    if (model === undefined || row === undefined) continue
    rows.set(model, {
      ...row,
      requests: row.requests + summary.request_count,
      tokens: row.tokens + summary.total_tokens,
      spent: row.spent + summary.estimated_cost_usd
    })
  }
  return [...rows.values()].sort((a, b) => b.spent - a.spent || b.requests - a.requests || (a.model < b.model ? -1 : 1))
}
