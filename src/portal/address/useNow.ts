import { useEffect, useSyncExternalStore } from "react"

/** One timer for each step, however many components show a time. It rests while the tab is hidden. */
interface Ticker {
  readonly everyMs: number
  now: number
  timer: number | undefined
  readonly listeners: Set<() => void>
  /** While there is one, the time stands still. */
  readonly holds: Set<object>
}

const tickers = new Map<number, Ticker>()

const makeTicker = (everyMs: number): Ticker => ({
  everyMs,
  now: Date.now(),
  timer: undefined,
  listeners: new Set(),
  holds: new Set()
})

const tickerOf = (everyMs: number): Ticker => {
  const found = tickers.get(everyMs)
  if (found !== undefined) return found
  const made = makeTicker(everyMs)
  tickers.set(everyMs, made)
  return made
}

const useTicker = (ticker: Ticker): number =>
  useSyncExternalStore(
    (listener) => {
      ticker.listeners.add(listener)
      if (ticker.timer === undefined) start(ticker)
      return () => {
        ticker.listeners.delete(listener)
        if (ticker.listeners.size > 0) return
        window.clearTimeout(ticker.timer)
        ticker.timer = undefined
      }
    },
    () => ticker.now
  )

const start = (ticker: Ticker): void => {
  ticker.timer = window.setTimeout(
    () => {
      start(ticker)
      tick(ticker)
    },
    ticker.everyMs - (Date.now() % ticker.everyMs)
  )
}

const tick = (ticker: Ticker): void => {
  if (document.hidden || ticker.holds.size > 0) return
  ticker.now = Date.now()
  for (const each of ticker.listeners) each()
}

/** Returns the time, and draws the component again with each multiple of the step. */
export const useNow = (everyMs: number): number => useTicker(tickerOf(everyMs))

const shown = makeTicker(60_000)

/** Returns the minute that the numbers and lists of the page go up to. */
export const useShownNow = (): number => useTicker(shown)

/** Keeps what is shown as it is, as the range of a page goes on with the time, and another range is read anew. */
export const useHeldTime = (isHeld: boolean): void => {
  useEffect(() => {
    if (!isHeld) return
    const hold = {}
    shown.holds.add(hold)
    return () => {
      shown.holds.delete(hold)
      tick(shown)
    }
  }, [isHeld])
}
