import { Schema } from "effect"
import { type ModelPrice as NanoPrice, toNanos } from "../../policy/Price.ts"
import { PriceList } from "../../policy/PriceList.ts"
import {
  type BookPrice,
  type ModelPrice,
  ModelPriceInput,
  PricedModel,
  PriceField
} from "../api/providers/ModelPricesApi.ts"
import { fingerprint } from "../store/Fingerprint.ts"
import bookFile from "./price-book.json" with { type: "json" }

const Price = ModelPriceInput.pipe(
  Schema.fieldsAssign({
    models: Schema.Array(PricedModel),
    note: Schema.optionalKey(Schema.String)
  })
)

const Book = Schema.Struct({
  format: Schema.Literal("svc-price-book/1"),
  vendors: Schema.Array(
    Schema.Struct({
      vendor: Schema.String,
      /** The public page that has the prices, and the day on which they were read. */
      source: Schema.String,
      as_of: Schema.String,
      prices: Schema.Array(Price)
    })
  )
})

const book = Schema.decodeUnknownSync(Book)(bookFile, { onExcessProperty: "error" })

export const vendors = book.vendors.map(({ prices: _, ...vendor }) => vendor)

interface BookEntry extends Prices {
  readonly model: string
  readonly vendor: string
  readonly note: string | null
}

export type Prices = Pick<ModelPrice, PriceField>

const entries: ReadonlyArray<BookEntry> = book.vendors.flatMap(({ prices, vendor }) =>
  prices.flatMap(({ models, note = null, ...price }) =>
    models.map((model) => ({
      model,
      vendor,
      note,
      input_usd_per_million: price.input_usd_per_million,
      output_usd_per_million: price.output_usd_per_million,
      cached_input_usd_per_million: price.cached_input_usd_per_million ?? null,
      cache_write_usd_per_million: price.cache_write_usd_per_million ?? null
    }))
  )
)

const byModel = new Map(entries.map((entry) => [entry.model, entry]))

/** Returns the note that the book has beside the price of a model, such as that long prompts cost more. */
export const noteOf = (model: string): string | null => byModel.get(model)?.note ?? null

export const isInBook = (model: string): boolean => byModel.has(model)

export const priceOf = (model: string): Prices | undefined => {
  const entry = byModel.get(model)
  return entry === undefined ? undefined : pricesOf(entry)
}

/** The price as `Price.cost` takes it. */
export const inNanos = (price: Prices): NanoPrice => ({
  input: toNanos(price.input_usd_per_million),
  output: toNanos(price.output_usd_per_million),
  cachedInput: nanosOrNull(price.cached_input_usd_per_million),
  cacheWrite: nanosOrNull(price.cache_write_usd_per_million)
})

const nanosOrNull = (dollars: number | null): number | null => (dollars === null ? null : toNanos(dollars))

export const pricesOf = (price: Prices): Prices => ({
  input_usd_per_million: price.input_usd_per_million,
  output_usd_per_million: price.output_usd_per_million,
  cached_input_usd_per_million: price.cached_input_usd_per_million,
  cache_write_usd_per_million: price.cache_write_usd_per_million
})

/** Compares the book with the stored prices. */
export const compare = (prices: ReadonlyArray<ModelPrice>) => {
  const stored = new Map(prices.map((price) => [price.model, price]))
  const patterns = patternsOf(prices)
  return {
    base_hash: hashOf(prices),
    vendors,
    prices: entries.map((entry) => compareEntry(entry, stored.get(entry.model), patterns)),
    not_in_book: prices.filter(({ model }) => !byModel.has(model))
  }
}

const compareEntry = (
  entry: BookEntry,
  before: ModelPrice | undefined,
  patterns: ReturnType<typeof patternsOf>
): BookPrice => {
  const changes = PriceField.literals.flatMap((field) => {
    const from = before?.[field] ?? null
    return from === entry[field] ? [] : [{ field, from, to: entry[field] }]
  })
  return {
    ...entry,
    status: before === undefined ? "new" : changes.length === 0 ? "same" : "changed",
    changes,
    covered_by: before === undefined ? (patterns.priceOf(entry.model)?.pattern ?? null) : null
  }
}

/** Looks up the name under which a price is stored. */
export const patternsOf = (prices: ReadonlyArray<ModelPrice>) =>
  new PriceList(
    prices.map((price) => [
      price.model,
      {
        pattern: price.model,
        input: price.input_usd_per_million,
        output: price.output_usd_per_million,
        cachedInput: price.cached_input_usd_per_million,
        cacheWrite: price.cache_write_usd_per_million
      }
    ])
  )

const hashOf = (prices: ReadonlyArray<ModelPrice>): string => {
  const section = (all: ReadonlyArray<Prices & { readonly model: string }>) =>
    new Map(all.map((price) => [price.model, { ...pricesOf(price) }]))
  return fingerprint(
    new Map([
      ["stored", section(prices)],
      ["book", section(entries)]
    ])
  )
}
