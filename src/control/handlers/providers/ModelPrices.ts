import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { ModelPrices } from "../../providers/ModelPrices.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "model-prices",
  Effect.fn(function* (handlers) {
    const prices = yield* ModelPrices
    return handlers.handleAll({
      list: () => prices.list,
      book: () => prices.book,
      import: ({ payload }) => prices.importBook(payload),
      get: ({ params }) => prices.get(params.model),
      put: ({ params, payload }) => prices.put(params.model, payload),
      remove: ({ params, query }) => prices.remove(params.model, query.expected_updated_at)
    })
  })
)
