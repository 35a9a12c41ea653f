import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { isModelPattern } from "../../../policy/ModelPattern.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { Timestamp } from "../schema/Fields.ts"
import { operation, skipsUnreadable } from "../schema/Security.ts"

/** US dollars per million tokens. Prices are stored in whole nano-dollars. */
const Dollars = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 9_000_000 }))

/** The prices of a model. For a price that is `null` or absent, the price of input tokens applies. */
export const ModelPriceInput = Schema.Struct({
  input_usd_per_million: Dollars,
  output_usd_per_million: Dollars,
  cached_input_usd_per_million: Schema.optionalKey(Schema.NullOr(Dollars)),
  cache_write_usd_per_million: Schema.optionalKey(Schema.NullOr(Dollars))
})
export type ModelPriceInput = typeof ModelPriceInput.Type

export const ModelPrice = Schema.Struct({
  model: Schema.String,
  input_usd_per_million: Dollars,
  output_usd_per_million: Dollars,
  cached_input_usd_per_million: Schema.NullOr(Dollars),
  cache_write_usd_per_million: Schema.NullOr(Dollars),
  updated_at: Timestamp
})
export type ModelPrice = typeof ModelPrice.Type

export const ModelName = Schema.String.check(Schema.isBetweenLength(1, 256), Schema.isPattern(/^[^\p{Cc}]*$/u))

/** A model name, or the common beginning of several names followed by `*`. */
export const PricedModel = ModelName.check(isModelPattern)

/** Slashes in a model name must be percent-encoded. */
const params = { model: ModelName }

export const ModelPricesApi = HttpApiGroup.make("model-prices")
  .annotate(OpenApi.Description, "Prices of a model's tokens, used if the upstream does not report the cost.")
  .add(
    HttpApiEndpoint.get("list", "/", { success: Schema.Array(ModelPrice) })
      .annotateMerge(skipsUnreadable)
      .annotateMerge(operation("List model prices", "usage:read")),
    HttpApiEndpoint.get("get", "/:model", { params, success: ModelPrice }).annotateMerge(
      operation("Show the price of a model", "usage:read")
    ),
    HttpApiEndpoint.put("put", "/:model", {
      params,
      payload: ModelPriceInput,
      success: ModelPrice,
      error: refusals("invalid_configuration")
    })
      .annotateMerge(operation("Set the price of a model", "settings:update"))
      .annotate(
        OpenApi.Description,
        "`claude-*` sets the price of every model whose name begins with `claude-` and that has no price of its own. If several prefixes match, the longest applies."
      )
      .annotateMerge(bodyExample({ input_usd_per_million: 3, output_usd_per_million: 15 })),
    HttpApiEndpoint.delete("remove", "/:model", { params, success: HttpApiSchema.NoContent }).annotateMerge(
      operation("Delete the price of a model", "settings:update")
    )
  )
  .prefix("/model-prices")
