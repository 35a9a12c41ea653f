import { useEffect, useState } from "react"

const mostWaitMs = 1_000

interface Options {
  /** The second begins once this is true. */
  readonly from?: boolean
}

/**
 * True once all of them have answered or failed, or after a second. What is drawn below them would jump until then; after
 * that it has waited long enough.
 */
export const useSettled = (
  queries: ReadonlyArray<{ readonly isPending: boolean }>,
  { from = true }: Options = {}
): boolean => {
  const [isOver, setOver] = useState(false)
  useEffect(() => {
    if (!from) return
    const timer = window.setTimeout(() => setOver(true), mostWaitMs)
    return () => window.clearTimeout(timer)
  }, [from])
  return isOver || queries.every(({ isPending }) => !isPending)
}
