import { Context, type DateTime, Effect, Layer, Schema } from "effect"
import * as Price from "../../policy/Price.ts"
import { Database } from "../../services/Database.ts"
import {
  ModelPrice,
  type ModelPriceInput,
  type ModelPricePut,
  type PriceBook as PriceBookComparison,
  PricedModel,
  type PriceImport
} from "../api/providers/ModelPricesApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { isUnreadable, type Unreadable } from "../api/schema/Fields.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import { requireUnchanged, type Versioned } from "../store/Precondition.ts"
import { Count, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import * as PriceBook from "./PriceBook.ts"

type ImportRefused = Refused<"invalid_configuration" | "configuration_changed">

/** Stores prices of tokens, for upstreams that do not report costs. The API uses dollars, the table nano-dollars. */
export class ModelPrices extends Context.Service<
  ModelPrices,
  {
    readonly list: Effect.Effect<ReadonlyArray<ModelPrice>, StoreFailure>
    readonly get: (model: string) => Effect.Effect<ModelPrice, Refused<"not_found"> | StoreFailure>
    readonly put: (
      model: string,
      price: ModelPricePut
    ) => Effect.Effect<ModelPrice, Refused<"invalid_configuration" | "changed_since_read"> | StoreFailure, Actor>
    readonly remove: (
      model: string,
      expectedUpdatedAt?: DateTime.Utc
    ) => Effect.Effect<void, Refused<"not_found" | "changed_since_read"> | StoreFailure, Actor>
    /** Returns what an import of the price book would change. */
    readonly book: Effect.Effect<PriceBookComparison, StoreFailure>
    /** Imports the compared prices, in one transaction and with an audit event for each. */
    readonly importBook: (
      wanted: PriceImport
    ) => Effect.Effect<
      { readonly base_hash: string; readonly imported: ReadonlyArray<ModelPrice> },
      ImportRefused | StoreFailure,
      Actor
    >
  }
>()("svc/control/ModelPrices") {
  static readonly layer = Layer.suspend(() => Layer.effect(ModelPrices, make))
}

const make = Effect.gen(function* () {
  const { sql, transaction } = yield* Database
  const audit = yield* Audit

  /** Locks the row even if it cannot be decoded. Only the audit event needs the old values. */
  const lock = (model: string) =>
    Effect.map(priceRows.firstOrUnreadable(sql`SELECT * FROM model_prices WHERE model = ${model} FOR UPDATE`), (row) =>
      row === undefined ? null : isUnreadable(row) ? row : toModelPrice(row)
    )

  const readAll = Effect.map(priceRows.all(sql`SELECT * FROM model_prices ORDER BY model`), (all) =>
    all.map(toModelPrice)
  )

  const put = <Refusal = never>(
    model: string,
    price: ModelPriceInput,
    check: (before: Versioned | Unreadable) => Effect.Effect<void, Refusal> = () => Effect.void
  ) =>
    audit.mutate(function* ({ write }) {
      if (!isPriced(model)) return yield* misplacedStar
      const before = yield* lock(model)
      yield* check(before ?? { updated_at: null })
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

  const putExpected = ({ expected_updated_at, ...price }: ModelPricePut, model: string) =>
    put(model, price, (before) => requireUnchanged(expected_updated_at, before))

  const importBook = Effect.fn("ModelPrices.importBook")(function* ({ base_hash, models }: PriceImport) {
    const unknown = models?.find((model) => !PriceBook.isInBook(model))
    if (unknown !== undefined) return yield* notInBook(unknown)
    // The lock blocks other writers until the commit. The hash that is checked below therefore stays valid.
    yield* sql`LOCK TABLE model_prices IN EXCLUSIVE MODE`
    const compared = PriceBook.compare(yield* readAll)
    if (compared.base_hash !== base_hash) return yield* changedSince
    const named = models && new Set(models)
    const chosen = compared.prices.filter(({ covered_by, model, status }) =>
      named === undefined ? status === "new" && covered_by === null : named.has(model) && status !== "same"
    )
    const imported = yield* Effect.forEach(chosen, (price) => put(price.model, PriceBook.pricesOf(price)))
    return { base_hash: PriceBook.compare(yield* readAll).base_hash, imported }
  })

  return ModelPrices.of({
    list: readAll.pipe(toStoreFailures, Effect.withSpan("ModelPrices.list")),

    book: readAll.pipe(Effect.map(PriceBook.compare), toStoreFailures, Effect.withSpan("ModelPrices.book")),

    importBook: (wanted) => transaction(importBook(wanted)).pipe(toStoreFailures),

    get: Effect.fn("ModelPrices.get")(function* (model) {
      const row = yield* priceRows.first(sql`SELECT * FROM model_prices WHERE model = ${model}`)
      return row === undefined ? yield* priceNotFound : toModelPrice(row)
    }, toStoreFailures),

    put: Effect.fn("ModelPrices.put")(function* (model, price) {
      if (price.expected_updated_at !== null) return yield* putExpected(price, model)
      // A price that is not stored has no row to lock, so two requests could both find none.
      const lockAll = sql`LOCK TABLE model_prices IN EXCLUSIVE MODE`
      return yield* transaction(Effect.andThen(lockAll, putExpected(price, model)))
    }, toStoreFailures),

    remove: Effect.fn("ModelPrices.remove")((model, expectedUpdatedAt) =>
      audit.mutate(function* ({ write }) {
        const before = yield* lock(model)
        if (before === null) return yield* priceNotFound
        yield* requireUnchanged(expectedUpdatedAt, before)
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
const notInBook = (model: string) =>
  new ControlError(
    "invalid_configuration",
    `The price book has no model "${model.slice(0, 256)}". GET model-prices/book lists its models; set another price with PUT model-prices/{model}.`,
    { param: "models" }
  )
const changedSince = new ControlError(
  "configuration_changed",
  "The prices or the price book have changed since the comparison with this base_hash. Compare again: GET model-prices/book.",
  { param: "base_hash" }
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
