import { makeTicker, type Ticker, useTicker } from "./ticker.ts"

const tickers = new Map<number, Ticker>()

const tickerOf = (everyMs: number): Ticker => {
  const found = tickers.get(everyMs)
  if (found !== undefined) return found
  const made = makeTicker(everyMs)
  tickers.set(everyMs, made)
  return made
}

/** Returns the time, and draws the component again with each multiple of the step. */
export const useNow = (everyMs: number): number => useTicker(tickerOf(everyMs))
