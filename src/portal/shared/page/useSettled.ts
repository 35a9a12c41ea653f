import { useEffect, useState } from "react"

const mostWaitMs = 1_000

/**
 * True once all of them have answered or failed, or after a second. What is drawn below them would jump until then; after
 * that it has waited long enough.
 */
export const useSettled = (queries: ReadonlyArray<{ readonly isPending: boolean }>): boolean => {
  const [isOver, setOver] = useState(false)
  useEffect(() => {
    const timer = window.setTimeout(() => setOver(true), mostWaitMs)
    return () => window.clearTimeout(timer)
  }, [])
  return isOver || queries.every(({ isPending }) => !isPending)
}
