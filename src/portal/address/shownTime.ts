import { useEffect } from "react"
import { makeTicker, tick, useTicker } from "./ticker.ts"

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
