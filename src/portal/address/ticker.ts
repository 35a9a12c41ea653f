import { useSyncExternalStore } from "react"

/** One timer for each step, however many components show a time. It rests while the tab is hidden. */
export interface Ticker {
  readonly everyMs: number
  now: number
  timer: number | undefined
  readonly listeners: Set<() => void>
  /** While there is one, the time stands still. */
  readonly holds: Set<object>
}

export const makeTicker = (everyMs: number): Ticker => ({
  everyMs,
  now: Date.now(),
  timer: undefined,
  listeners: new Set(),
  holds: new Set()
})

export const useTicker = (ticker: Ticker): number =>
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

/** Goes on to the present time. */
export const tick = (ticker: Ticker): void => {
  if (document.hidden || ticker.holds.size > 0) return
  ticker.now = Date.now()
  for (const each of ticker.listeners) each()
}
