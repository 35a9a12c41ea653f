import { Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { isModelPattern } from "../../../policy/ModelPattern.ts"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { expectedUpdate, expectedUpdateOrNull, Timestamp } from "../schema/Fields.ts"
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

export const ModelPricePut = ModelPriceInput.pipe(Schema.fieldsAssign(expectedUpdateOrNull))
export type ModelPricePut = typeof ModelPricePut.Type

export const ModelPrice = Schema.Struct({
  model: Schema.String,
  input_usd_per_million: Dollars,
  output_usd_per_million: Dollars,
  cached_input_usd_per_million: Schema.NullOr(Dollars),
  cache_write_usd_per_million: Schema.NullOr(Dollars),
  updated_at: Timestamp
})
export type ModelPrice = typeof ModelPrice.Type

/** The four prices of a model. */
export const tokenPrices = Struct.omit(ModelPrice.fields, ["model", "updated_at"])

export const PriceField = Schema.Literals([
  "input_usd_per_million",
  "output_usd_per_million",
  "cached_input_usd_per_million",
  "cache_write_usd_per_million"
])
export type PriceField = typeof PriceField.Type

/** A price of the book, beside the stored one. */
export const BookPrice = Schema.Struct({
  model: Schema.String,
  vendor: Schema.String,
  /** A remark on what the four prices leave out, such as a higher price of long prompts. */
  note: Schema.NullOr(Schema.String),
  status: Schema.Literals(["new", "changed", "same"]),
  ...tokenPrices,
  changes: Schema.Array(Schema.Struct({ field: PriceField, from: Schema.NullOr(Dollars), to: Schema.NullOr(Dollars) })),
  /** The stored pattern that prices a `new` model now. An import of the model takes precedence over it. */
  covered_by: Schema.NullOr(Schema.String)
})
export type BookPrice = typeof BookPrice.Type

export const PriceBook = Schema.Struct({
  /** Identifies the stored prices and the book that were compared. */
  base_hash: Schema.String,
  vendors: Schema.Array(Schema.Struct({ vendor: Schema.String, source: Schema.String, as_of: Schema.String })),
  prices: Schema.Array(BookPrice),
  /** Stored prices that the book does not have. An import leaves them as they are. */
  not_in_book: Schema.Array(ModelPrice)
})
export type PriceBook = typeof PriceBook.Type

export const PriceImport = Schema.Struct({
  base_hash: Schema.String,
  /** Without it all `new` models are imported that no stored pattern covers. */
  models: Schema.optionalKey(Schema.Array(Schema.String).check(Schema.isMaxLength(1000)))
})
export type PriceImport = typeof PriceImport.Type

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
    HttpApiEndpoint.get("book", "/book", { success: PriceBook })
      .annotateMerge(operation("Compare the price book with the stored prices", "usage:read"))
      .annotate(
        OpenApi.Description,
        "The price book is part of the program: common models with their public prices, their source and the day on which they were read. Nothing of it applies before it is imported."
      ),
    HttpApiEndpoint.post("import", "/import", {
      payload: PriceImport,
      success: Schema.Struct({ base_hash: Schema.String, imported: Schema.Array(ModelPrice) }),
      error: refusals("invalid_configuration", "configuration_changed")
    })
      .annotateMerge(operation("Import prices from the price book", "settings:update"))
      .annotate(
        OpenApi.Description,
        "Imports what the comparison with this `base_hash` showed, or nothing. A price that an operator set, and a model that an operator's pattern covers, change only if `models` names them."
      )
      .annotateMerge(bodyExample({ base_hash: "…", models: ["gpt-5"] })),
    HttpApiEndpoint.get("get", "/:model", { params, success: ModelPrice }).annotateMerge(
      operation("Show the price of a model", "usage:read")
    ),
    HttpApiEndpoint.put("put", "/:model", {
      params,
      payload: ModelPricePut,
      success: ModelPrice,
      error: refusals("invalid_configuration", "changed_since_read")
    })
      .annotateMerge(operation("Set the price of a model", "settings:update"))
      .annotate(
        OpenApi.Description,
        "`claude-*` sets the price of every model whose name begins with `claude-` and that has no price of its own. If several prefixes match, the longest applies."
      )
      .annotateMerge(bodyExample({ input_usd_per_million: 3, output_usd_per_million: 15 })),
    HttpApiEndpoint.delete("remove", "/:model", {
      params,
      query: expectedUpdate,
      success: HttpApiSchema.NoContent,
      error: refusals("changed_since_read")
    }).annotateMerge(operation("Delete the price of a model", "settings:update"))
  )
  .prefix("/model-prices")
