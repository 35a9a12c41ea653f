import { Context, DateTime, Effect, Layer } from "effect"
import { cost, toDollars } from "../../policy/Price.ts"
import * as UsageSums from "../../state/UsageSums.ts"
import type { ModelPrice } from "../api/providers/ModelPricesApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Operator } from "../api/schema/Security.ts"
import { maxSeenModels, type SeenModel, type SeenModelsQuery } from "../api/usage/SeenModelsApi.ts"
import type { StoreFailure } from "../store/Rows.ts"
import { Usage } from "../usage/Usage.ts"
import { UsageSeries } from "../usage/UsageSeries.ts"
import { ModelPrices } from "./ModelPrices.ts"
import * as PriceBook from "./PriceBook.ts"

const days = 30

/** Lists the models of recent requests beside their prices. The sums by model are read, not the events. */
export class SeenModels extends Context.Service<
  SeenModels,
  {
    readonly list: (
      query: SeenModelsQuery
    ) => Effect.Effect<
      { readonly from: DateTime.Utc; readonly models: ReadonlyArray<SeenModel>; readonly has_more: boolean },
      Refused<"invalid_usage_query"> | StoreFailure,
      Operator
    >
  }
>()("svc/control/SeenModels") {
  static readonly layer = Layer.effect(
    SeenModels,
    Effect.gen(function* () {
      const usage = yield* Usage
      const series = yield* UsageSeries
      const prices = yield* ModelPrices
      return SeenModels.of({
        list: Effect.fn("SeenModels.list")(function* ({ limit = 100, p95 = "false", priced, sort_by = "requests" }) {
          // Whole days are read from sums of days.
          const from = DateTime.startOf(DateTime.subtract(yield* DateTime.now, { days }), "day")
          const groups = yield* usage.breakdown("models", { from, breakdown_limit: maxSeenModels, sort_by })
          const latencies = p95 === "true" ? yield* orTooSlow(series.latencyByModel(from)) : new Map<string, number>()
          const stored = yield* prices.list
          const refused = yield* orNone(usage.refusedForPrice({ from, breakdown_limit: maxSeenModels }))
          const named = groups.filter(({ name }) => !UsageSums.isWithoutModel(name))
          const seen = refusedFirst(seenModels(withRefused(named, refused), stored, latencies, refused)).filter(
            (model) => priced === undefined || (model.price !== null) === (priced === "true")
          )
          return {
            from,
            models: seen.slice(0, limit),
            has_more: seen.length > limit || groups.length === maxSeenModels
          }
        })
      })
    })
  )
}

/** The range cannot be chosen, so the sentence about a query that takes too long is another one. */
const orTooSlow = <A, E, R>(latencies: Effect.Effect<A, E, R>) =>
  Effect.mapError(latencies, (error) => (isOverdue(error) ? tooSlow : error))

/** The list is of use without the refusals, whose number clients choose. */
const orNone = <A, E, R>(refused: Effect.Effect<ReadonlyArray<A>, E, R>) =>
  Effect.catchIf(refused, isOverdue, () => Effect.succeed([]))

const isOverdue = <E>(error: E): boolean => error instanceof ControlError && error.code === "invalid_usage_query"

const tooSlow = new ControlError(
  "invalid_usage_query",
  `The latencies of ${days} days took too long to add up. Leave out p95, or try again later.`,
  { param: "p95" }
)

type Groups = Effect.Success<ReturnType<Usage["Service"]["breakdown"]>>

/** Adds the models whose requests were all refused. The names come from clients and may not exist upstream. */
const withRefused = (groups: Groups, refused: Groups): Groups => {
  const known = new Set(groups.map(({ name }) => name))
  return [...groups, ...refused.filter(({ name }) => !known.has(name))]
}

/** A model that has a price by now is refused no longer. */
const refusedFirst = (models: ReadonlyArray<SeenModel>): ReadonlyArray<SeenModel> => {
  const isRefused = ({ price, refused_for_price_count }: SeenModel) => price === null && refused_for_price_count > 0
  return [
    ...models.filter(isRefused).toSorted((a, b) => b.refused_for_price_count - a.refused_for_price_count),
    ...models.filter((model) => !isRefused(model))
  ]
}

const seenModels = (
  groups: Groups,
  stored: ReadonlyArray<ModelPrice>,
  p95: ReadonlyMap<string, number>,
  refused: Groups
): ReadonlyArray<SeenModel> => {
  const refusals = new Map(refused.map(({ name, summary }) => [name, summary.request_count]))
  const patterns = PriceBook.patternsOf(stored)
  const byName = new Map(stored.map((price) => [price.model, price]))
  return groups.map(({ name, summary }) => {
    const pattern = patterns.priceOf(name)?.pattern
    const book = pattern === undefined ? PriceBook.priceOf(name) : undefined
    return {
      model: name,
      price: pattern === undefined ? null : (byName.get(pattern) ?? null),
      in_book: PriceBook.isInBook(name),
      book_price: book ?? null,
      at_book_price_usd: book === undefined ? null : costAt(book, summary),
      p95_latency_ms: p95.get(name) ?? null,
      refused_for_price_count: refusals.get(name) ?? 0,
      summary
    }
  })
}

/** The sums of tokens are priced as one request, so that rounding differs by less than a nano-dollar for each request. */
const costAt = (price: PriceBook.Prices, summary: Groups[number]["summary"]): number =>
  toDollars(
    cost(PriceBook.inNanos(price), {
      input: summary.input_tokens,
      output: summary.output_tokens,
      cachedInput: summary.cached_input_tokens,
      cacheWrite: summary.cache_write_tokens
    })
  )
