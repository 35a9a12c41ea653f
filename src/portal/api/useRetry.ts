import { useState } from "react"

/** Returns `retry`, and whether it still waits for what `ask` returns. A second click asks nothing more until then. */
export const useRetry = (ask: () => unknown) => {
  const [isAsking, setAsking] = useState(false)
  const retry = () => {
    if (isAsking) return
    setAsking(true)
    void Promise.resolve(ask()).finally(() => setAsking(false))
  }
  return { isAsking, retry }
}
