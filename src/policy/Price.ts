/** Amounts are whole nano-dollars, so that sums are exact and prices per million tokens are whole numbers. */
export const nanosPerDollar = 1_000_000_000

/** The maximum of a budget and of one request's cost. Redis counters hold this amount exactly. */
export const maxDollars = 9_000_000

export const toNanos = (usd: number): number => Math.round(usd * nanosPerDollar)
export const toDollars = (nanos: number): number => nanos / nanosPerDollar

/** Prices in nano-dollars per million tokens. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
  /** If the price of cached input or cache writes is `null`, the `input` price applies. */
  readonly cachedInput: number | null
  readonly cacheWrite: number | null
}

export const highestPrice = ([first, ...others]: ReadonlyArray<ModelPrice>): ModelPrice | undefined =>
  first === undefined ? undefined : others.reduce(higherPrice, first)

const higherPrice = (a: ModelPrice, b: ModelPrice): ModelPrice => ({
  input: Math.max(a.input, b.input),
  output: Math.max(a.output, b.output),
  cachedInput: Math.max(a.cachedInput ?? a.input, b.cachedInput ?? b.input),
  cacheWrite: Math.max(a.cacheWrite ?? a.input, b.cacheWrite ?? b.input)
})

export interface PricedTokens {
  readonly input: number
  readonly output: number
  readonly cachedInput: number
  readonly cacheWrite: number
}

/** Returns nano-dollars, rounded up. The maximum is `maxDollars`, so that no usage report overflows a counter. */
export const cost = (price: ModelPrice, tokens: PricedTokens): number => {
  const plain = Math.max(0, tokens.input - tokens.cachedInput - tokens.cacheWrite)
  const perMillion =
    plain * price.input +
    tokens.cachedInput * (price.cachedInput ?? price.input) +
    tokens.cacheWrite * (price.cacheWrite ?? price.input) +
    tokens.output * price.output
  return Math.min(Math.ceil(perMillion / 1_000_000), toNanos(maxDollars))
}
