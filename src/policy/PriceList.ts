import { prefixOf } from "./ModelPattern.ts"
import type { ModelPrice } from "./Price.ts"

/**
 * The operator's prices, by the name of a model or by the beginning of its name (`claude-*`). The price of the model
 * itself goes before any other, and of those that match its beginning the longest wins.
 */
export class PriceList {
  static readonly empty = new PriceList([])

  readonly #named = new Map<string, ModelPrice>()
  readonly #beginning = new Map<string, ModelPrice>()
  /** Of the beginnings, the longest first: a look-up takes one step for each, however many prices there are. */
  readonly #lengths: ReadonlyArray<number>

  constructor(prices: Iterable<readonly [pattern: string, price: ModelPrice]>) {
    for (const [pattern, price] of prices) {
      const prefix = prefixOf(pattern)
      if (prefix === undefined) this.#named.set(pattern, price)
      else this.#beginning.set(prefix, price)
    }
    this.#lengths = [...new Set([...this.#beginning.keys()].map((prefix) => prefix.length))].sort((a, b) => b - a)
  }

  priceOf(model: string): ModelPrice | undefined {
    return this.#named.get(model) ?? this.#byBeginning(model)
  }

  #byBeginning(model: string): ModelPrice | undefined {
    for (const length of this.#lengths) {
      if (length > model.length) continue
      const price = this.#beginning.get(model.slice(0, length))
      if (price !== undefined) return price
    }
    return undefined
  }
}
