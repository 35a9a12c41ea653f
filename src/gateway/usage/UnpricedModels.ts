import { Effect } from "effect"
import { defaultCostNanos } from "../../policy/Estimate.ts"
import { toDollars } from "../../policy/Price.ts"

/** Further models are not told apart: clients may invent names, and an upstream may answer to each of them. */
const mostModels = 1000

/** Says once for each model that it has no price, for as long as this process lives. */
export const make = (log: (message: Effect.Effect<void>) => void): ((model: string | undefined) => void) => {
  const warned = new Set<string | undefined>()
  return (model) => {
    if (warned.has(model) || warned.size >= mostModels) return
    warned.add(model)
    log(
      Effect.logWarning("a model has no price", {
        model: model ?? "none that the request names",
        counts_as_usd: toDollars(defaultCostNanos),
        mend: "PUT /admin-ui/admin/model-prices/{model}, where claude-* is for all names that begin so; or set unpriced_models to refuse"
      })
    )
  }
}
