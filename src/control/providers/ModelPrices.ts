import { Context, Effect, Layer, Schema } from "effect"
import * as Price from "../../policy/Price.ts"
import { Database } from "../../services/Database.ts"
import { ModelPrice, type ModelPriceInput, PricedModel } from "../api/providers/ModelPricesApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { isUnreadable } from "../api/schema/Fields.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import { Count, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"

/** Stores prices of tokens, for upstreams that do not report costs. The API uses dollars, the table nano-dollars. */
export class ModelPrices extends Context.Service<
  ModelPrices,
  {
    readonly list: Effect.Effect<ReadonlyArray<ModelPrice>, StoreFailure>
    readonly get: (model: string) => Effect.Effect<ModelPrice, Refused<"not_found"> | StoreFailure>
    readonly put: (
      model: string,
      price: ModelPriceInput
    ) => Effect.Effect<ModelPrice, Refused<"invalid_configuration"> | StoreFailure, Actor>
    readonly remove: (model: string) => Effect.Effect<void, Refused<"not_found"> | StoreFailure, Actor>
  }
>()("svc/control/ModelPrices") {
  static readonly layer = Layer.suspend(() => Layer.effect(ModelPrices, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit

  /** Locks the row even if it cannot be decoded. Only the audit event needs the old values. */
  const lock = (model: string) =>
    Effect.map(priceRows.firstOrUnreadable(sql`SELECT * FROM model_prices WHERE model = ${model} FOR UPDATE`), (row) =>
      row === undefined ? null : isUnreadable(row) ? row : toModelPrice(row)
    )

  return ModelPrices.of({
    list: priceRows.all(sql`SELECT * FROM model_prices ORDER BY model`).pipe(
      Effect.map((all) => all.map(toModelPrice)),
      toStoreFailures,
      Effect.withSpan("ModelPrices.list")
    ),

    get: Effect.fn("ModelPrices.get")(function* (model) {
      const row = yield* priceRows.first(sql`SELECT * FROM model_prices WHERE model = ${model}`)
      return row === undefined ? yield* priceNotFound : toModelPrice(row)
    }, toStoreFailures),

    put: Effect.fn("ModelPrices.put")((model, price) =>
      audit.mutate(function* ({ write }) {
        if (!isPriced(model)) return yield* misplacedStar
        const before = yield* lock(model)
        const row = yield* priceRows.only(write`
          INSERT INTO model_prices ${sql.insert({ model, ...columnsOf(price) })}
          ON CONFLICT (model) DO UPDATE SET
            input_nanos_per_million = excluded.input_nanos_per_million,
            output_nanos_per_million = excluded.output_nanos_per_million,
            cached_input_nanos_per_million = excluded.cached_input_nanos_per_million,
            cache_write_nanos_per_million = excluded.cache_write_nanos_per_million,
            updated_at = now()
          RETURNING *`)
        const after = toModelPrice(row)
        return {
          result: after,
          auditAction: { target: "model_price", action: "prices:upsert" },
          targetId: model,
          snapshots: yield* snapshots(before, after),
          changes: [{ _tag: "Configuration" }]
        }
      })
    ),

    remove: Effect.fn("ModelPrices.remove")((model) =>
      audit.mutate(function* ({ write }) {
        const before = yield* lock(model)
        if (before === null) return yield* priceNotFound
        yield* write`DELETE FROM model_prices WHERE model = ${model}`
        return {
          result: undefined,
          auditAction: { target: "model_price", action: "prices:delete" },
          targetId: model,
          snapshots: yield* snapshots(before, null),
          changes: [{ _tag: "Configuration" }]
        }
      })
    )
  })
})

const Row = Schema.Struct({
  model: Schema.String,
  input_nanos_per_million: Count,
  output_nanos_per_million: Count,
  cached_input_nanos_per_million: Schema.NullOr(Count),
  cache_write_nanos_per_million: Schema.NullOr(Count),
  updated_at: Schema.DateTimeUtcFromDate
})

const priceRows = storedRows(Row, { table: "model_prices", key: ["model"] })
const priceNotFound = new ControlError("not_found", "There is no price for this model.")
const misplacedStar = new ControlError(
  "invalid_configuration",
  'The model must be a full name, or a prefix with one "*" at its end, such as "gpt-5*".',
  { param: "model" }
)
const isPriced = Schema.is(PricedModel)
const snapshots = Snapshots.of(ModelPrice)

const nanos = (usd: number | null | undefined): number | null =>
  usd === null || usd === undefined ? null : Price.toNanos(usd)
const dollars = (amount: number | null): number | null => (amount === null ? null : Price.toDollars(amount))

const columnsOf = (price: ModelPriceInput) => ({
  input_nanos_per_million: Price.toNanos(price.input_usd_per_million),
  output_nanos_per_million: Price.toNanos(price.output_usd_per_million),
  cached_input_nanos_per_million: nanos(price.cached_input_usd_per_million),
  cache_write_nanos_per_million: nanos(price.cache_write_usd_per_million)
})

const toModelPrice = (row: typeof Row.Type): ModelPrice => ({
  model: row.model,
  input_usd_per_million: Price.toDollars(row.input_nanos_per_million),
  output_usd_per_million: Price.toDollars(row.output_nanos_per_million),
  cached_input_usd_per_million: dollars(row.cached_input_nanos_per_million),
  cache_write_usd_per_million: dollars(row.cache_write_nanos_per_million),
  updated_at: row.updated_at
})
