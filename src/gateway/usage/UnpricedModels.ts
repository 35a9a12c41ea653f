import { Effect } from "effect"
import { defaultCostNanos } from "../../policy/Estimate.ts"
import { toDollars } from "../../policy/Price.ts"

/** Clients may invent model names, so the number of remembered names is limited. */
const mostModels = 1000

export const make = (log: (message: Effect.Effect<void>) => void): ((model: string | undefined) => void) => {
  const warned = new Set<string | undefined>()
  return (model) => {
    if (warned.has(model) || warned.size >= mostModels) return
    warned.add(model)
    log(
      Effect.logWarning("a model has no price; its requests are charged as the key's unpriced_models says", {
        model: model ?? "none that the request names",
        flat_usd: toDollars(defaultCostNanos),
        mend: "PUT /admin-ui/admin/model-prices/{model}, where claude-* matches every name with that prefix; or svc-runtime prices import; or set unpriced_models to refuse"
      })
    )
  }
}
