import { prefixOf } from "./ModelPattern.ts"
import type { ModelPrice } from "./Price.ts"

/** An exact name takes precedence over prefixes (`claude-*`), and a longer prefix over a shorter one. */
export class PriceList {
  static readonly empty = new PriceList([])

  readonly #named = new Map<string, ModelPrice>()
  readonly #beginning = new Map<string, ModelPrice>()
  /** Prefix lengths, longest first: a look-up takes one step per distinct length. */
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
