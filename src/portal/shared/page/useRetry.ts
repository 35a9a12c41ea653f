import { useState } from "react"

/** Asks again, and says while it does. */
export const useRetry = (ask: () => unknown) => {
  const [isAsking, setAsking] = useState(false)
  const retry = () => {
    setAsking(true)
    void Promise.resolve(ask()).finally(() => setAsking(false))
  }
  return { isAsking, retry }
}
