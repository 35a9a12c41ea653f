import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ModelPrice, tokenPrices } from "../providers/ModelPricesApi.ts"
import { refusals } from "../schema/Errors.ts"
import { Timestamp } from "../schema/Fields.ts"
import { operation, skipsUnreadable } from "../schema/Security.ts"
import { UsageSummary } from "./UsageApi.ts"

/** The list is of the models with the most requests, cost or tokens. */
export const maxSeenModels = 500

const SeenModel = Schema.Struct({
  /** `other` stands for names that clients invent, `unknown` for requests without a model. */
  model: Schema.String,
  /** The price that applies now, also that of a pattern. */
  price: Schema.NullOr(ModelPrice),
  /** True if the price book has a price that can be imported. */
  in_book: Schema.Boolean,
  /** The price of the book for a model without a price, and what the tokens of `summary` would have cost by it. */
  book_price: Schema.NullOr(Schema.Struct(tokenPrices)),
  at_book_price_usd: Schema.NullOr(Schema.Finite),
  /** The 95th percentile since `from`, within two per cent. `null` if no histogram has its requests, or without `p95`. */
  p95_latency_ms: Schema.NullOr(Schema.Finite),
  /** The requests that a policy refused because the model has no price, of the newest 100,000. 0 if they take too long to read. */
  refused_for_price_count: Schema.Int,
  summary: UsageSummary
})
export type SeenModel = typeof SeenModel.Type

const SeenModelsQuery = Schema.Struct({
  priced: Schema.optionalKey(Schema.Literals(["true", "false"])),
  sort_by: Schema.optionalKey(Schema.Literals(["requests", "cost", "tokens"])),
  /** Adds up the histograms of 30 days, which takes as long as the rest. */
  p95: Schema.optionalKey(Schema.Literals(["true", "false"])),
  limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxSeenModels })))
})
export type SeenModelsQuery = typeof SeenModelsQuery.Type

export const SeenModelsApi = HttpApiGroup.make("models")
  .annotate(OpenApi.Description, "Models of recent requests, with and without a price.")
  .add(
    HttpApiEndpoint.get("list", "/models", {
      query: SeenModelsQuery,
      success: Schema.Struct({ from: Timestamp, models: Schema.Array(SeenModel), has_more: Schema.Boolean }),
      error: refusals("invalid_usage_query")
    })
      .annotateMerge(skipsUnreadable)
      .annotateMerge(operation("List the models of the last 30 days", "usage:read"))
      .annotate(
        OpenApi.Description,
        "The most used come first, and before them those without a price that were asked for and refused for want of it. `priced=false` lists models whose requests are charged as `unpriced_models` says, or refused, for want of a price."
      )
  )
