import type { BodyOf, ResponseOf } from "../../api/Endpoints.ts"
import { decimalText } from "../../shared/words/format.ts"

export type SeenModel = ResponseOf<"GET", "/admin-ui/admin/models">["models"][number]
export type ModelPrice = ResponseOf<"GET", "/admin-ui/admin/model-prices">[number]
export type PriceInput = BodyOf<"PUT", "/admin-ui/admin/model-prices/:model">
export type BookPrice = ResponseOf<"GET", "/admin-ui/admin/model-prices/book">["prices"][number]

export const priceFields = [
  "input_usd_per_million",
  "output_usd_per_million",
  "cached_input_usd_per_million",
  "cache_write_usd_per_million"
] as const

export type Prices = { readonly [Field in (typeof priceFields)[number]]: number | null }

export const pricesOf = (price: Prices): Prices => ({
  input_usd_per_million: price.input_usd_per_million,
  output_usd_per_million: price.output_usd_per_million,
  cached_input_usd_per_million: price.cached_input_usd_per_million,
  cache_write_usd_per_million: price.cache_write_usd_per_million
})

/** `$1.25 / $10` for a million tokens of input and output. */
export const pairText = ({ input_usd_per_million, output_usd_per_million }: Prices): string =>
  `${dollars(input_usd_per_million)} / ${dollars(output_usd_per_million)}`

const dollars = (amount: number | null): string => (amount === null ? "–" : `$${decimalText(amount, 6)}`)

export const priceText = dollars

const orders: ReadonlyArray<string> = [...priceFields, "model", "updated_at"]

/** Returns the order of this table that the address names. The other table beside it has orders of its own. */
export const orderOfPrices = (text: string | undefined): string | undefined => orders.find((one) => one === text)

/** The prices in the order of a field, or as the server has them. Models without a price in it come last. */
export const sortedPrices = (
  prices: ReadonlyArray<ModelPrice>,
  by: string | undefined,
  isDescending: boolean
): ReadonlyArray<ModelPrice> => {
  if (by === undefined) return prices
  const field = priceFields.find((one) => one === by)
  const compare = (one: ModelPrice, other: ModelPrice): number => {
    if (field !== undefined) return (one[field] ?? 0) - (other[field] ?? 0)
    return by === "updated_at"
      ? String(one.updated_at).localeCompare(String(other.updated_at))
      : one.model.localeCompare(other.model)
  }
  const isPriced = (price: ModelPrice) => field === undefined || price[field] !== null
  const sorted = prices.filter(isPriced).sort(compare)
  return [...(isDescending ? sorted.reverse() : sorted), ...prices.filter((price) => !isPriced(price))]
}
