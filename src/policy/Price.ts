/** Money is whole nano-dollars inside: exact sums, and a million tokens at fifteen cents is still a whole price. */
export const nanosPerDollar = 1_000_000_000

/** The most that a budget can be, and that one request is ever said to cost: counters hold it exactly. */
export const maxDollars = 9_000_000

export const toNanos = (usd: number): number => Math.round(usd * nanosPerDollar)
export const toDollars = (nanos: number): number => nanos / nanosPerDollar

/** Nano-dollars for a million tokens. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
  /** Input read from the provider's cache; without a price of its own it costs what input costs. */
  readonly cachedInput: number | null
  /** Input written to the provider's cache, likewise. */
  readonly cacheWrite: number | null
}

/** The dearest of several, part by part: what a batch of mixed models costs at the most. */
export const highestPrice = ([first, ...others]: ReadonlyArray<ModelPrice>): ModelPrice | undefined =>
  first === undefined ? undefined : others.reduce(higherPrice, first)

const higherPrice = (a: ModelPrice, b: ModelPrice): ModelPrice => ({
  input: Math.max(a.input, b.input),
  output: Math.max(a.output, b.output),
  cachedInput: Math.max(a.cachedInput ?? a.input, b.cachedInput ?? b.input),
  cacheWrite: Math.max(a.cacheWrite ?? a.input, b.cacheWrite ?? b.input)
})

export interface PricedTokens {
  /** All input, cached and cache-writing input included. */
  readonly input: number
  readonly output: number
  readonly cachedInput: number
  readonly cacheWrite: number
}

/** Rounded up to a whole nano-dollar; a nonsensical report makes no counter overflow. */
export const cost = (price: ModelPrice, tokens: PricedTokens): number => {
  const plain = Math.max(0, tokens.input - tokens.cachedInput - tokens.cacheWrite)
  const perMillion =
    plain * price.input +
    tokens.cachedInput * (price.cachedInput ?? price.input) +
    tokens.cacheWrite * (price.cacheWrite ?? price.input) +
    tokens.output * price.output
  return Math.min(Math.ceil(perMillion / 1_000_000), toNanos(maxDollars))
}
