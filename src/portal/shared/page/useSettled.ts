import { useEffect, useState } from "react"

const mostWaitMs = 1_000

interface Options {
  /** The second begins once this is true. Default: at once. */
  readonly isBegun?: boolean
}

/**
 * True once all of them have answered or failed, or after a second. What is drawn below them would jump until then; after
 * that it has waited long enough.
 */
export const useSettled = (
  queries: ReadonlyArray<{ readonly isPending: boolean }>,
  { isBegun = true }: Options = {}
): boolean => {
  const [isOver, setOver] = useState(false)
  useEffect(() => {
    if (!isBegun) return
    const timer = window.setTimeout(() => setOver(true), mostWaitMs)
    return () => window.clearTimeout(timer)
  }, [isBegun])
  return isOver || queries.every(({ isPending }) => !isPending)
}
