import { prefixOf } from "./ModelPattern.ts"
import { highestPrice, type ModelPrice } from "./Price.ts"

/** Looks up model prices. An exact name wins over prefixes (`claude-*`), and longer prefixes win over shorter ones. */
export class PriceList<Price extends ModelPrice = ModelPrice> {
  static readonly empty = new PriceList([])

  readonly #named = new Map<string, Price>()
  readonly #beginning = new Map<string, Price>()
  /** The lengths of all prefixes, longest first. A look-up takes one step per length. */
  readonly #lengths: ReadonlyArray<number>
  /** The highest of each price in the list, for models that have none. `undefined` if the list is empty. */
  readonly dearest: ModelPrice | undefined

  constructor(prices: Iterable<readonly [pattern: string, price: Price]>) {
    const all = [...prices]
    this.dearest = highestPrice(all.map(([, price]) => price))
    for (const [pattern, price] of all) {
      const prefix = prefixOf(pattern)
      if (prefix === undefined) this.#named.set(pattern, price)
      else this.#beginning.set(prefix, price)
    }
    this.#lengths = [...new Set([...this.#beginning.keys()].map((prefix) => prefix.length))].sort((a, b) => b - a)
  }

  priceOf(model: string): Price | undefined {
    return this.#named.get(model) ?? this.#byBeginning(model)
  }

  #byBeginning(model: string): Price | undefined {
    for (const length of this.#lengths) {
      if (length > model.length) continue
      const price = this.#beginning.get(model.slice(0, length))
      if (price !== undefined) return price
    }
    return undefined
  }
}
