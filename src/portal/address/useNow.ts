import { useSyncExternalStore } from "react"

/** One timer for each step, however many components show a time. It rests while the tab is hidden. */
interface Ticker {
  now: number
  timer: number | undefined
  readonly listeners: Set<() => void>
}

const tickers = new Map<number, Ticker>()

const tickerOf = (everyMs: number): Ticker => {
  const found = tickers.get(everyMs)
  if (found !== undefined) return found
  const made: Ticker = { now: Date.now(), timer: undefined, listeners: new Set() }
  tickers.set(everyMs, made)
  return made
}

/** Returns the time, and draws the component again with each multiple of the step. */
export const useNow = (everyMs: number): number => {
  const ticker = tickerOf(everyMs)
  return useSyncExternalStore(
    (listener) => {
      ticker.listeners.add(listener)
      if (ticker.timer === undefined) start(ticker, everyMs)
      return () => {
        ticker.listeners.delete(listener)
        if (ticker.listeners.size > 0) return
        window.clearTimeout(ticker.timer)
        ticker.timer = undefined
      }
    },
    () => ticker.now
  )
}

const start = (ticker: Ticker, everyMs: number): void => {
  ticker.timer = window.setTimeout(
    () => {
      start(ticker, everyMs)
      if (document.hidden) return
      ticker.now = Date.now()
      for (const each of ticker.listeners) each()
    },
    everyMs - (Date.now() % everyMs)
  )
}
