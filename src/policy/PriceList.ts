import { prefixOf } from "./ModelPattern.ts"
import type { ModelPrice } from "./Price.ts"

/** Looks up model prices. An exact name wins over prefixes (`claude-*`), and longer prefixes win over shorter ones. */
export class PriceList {
  static readonly empty = new PriceList([])

  readonly #named = new Map<string, ModelPrice>()
  readonly #beginning = new Map<string, ModelPrice>()
  /** The lengths of all prefixes, longest first. A look-up takes one step per length. */
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
