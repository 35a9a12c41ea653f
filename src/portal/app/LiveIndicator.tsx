import { useEffect, useState } from "react"
import { useUtc } from "../address/useUtc.ts"
import { type LiveState, toggleLive, useLiveState } from "../api/live.ts"
import { clockText } from "../shared/words/format.ts"
import styles from "./TopBar.module.css"

const sentences: Readonly<Record<LiveState, string>> = {
  live: "What happens appears at once, or within a minute. Press l to pause.",
  paused: "Nothing changes by itself. Press l to go on.",
  reconnecting: "There is no connection to the server. Until there is one, the page asks again from time to time.",
  reset: "Some events were missing, so that the page was read again.",
  off: "Your token has no scope for live data."
}

export const LiveIndicator = () => {
  const state = useLiveState()
  if (state === "off") return null
  return (
    <button
      type="button"
      className={styles.live}
      data-state={state}
      onClick={toggleLive}
      aria-live="polite"
      title={sentences[state]}
    >
      {state}
    </button>
  )
}

/** A connection that comes back at once is no news. */
const patienceMs = 4_000

/** Says above the page that what it shows is old, once the server has been away for a while. */
export const LostNote = () => {
  const isLost = useLiveState() === "reconnecting"
  const utc = useUtc()
  const [since, setSince] = useState<Date>()
  useEffect(() => {
    if (!isLost) return setSince(undefined)
    const begun = new Date()
    const timer = window.setTimeout(() => setSince(begun), patienceMs)
    return () => window.clearTimeout(timer)
  }, [isLost])
  if (since === undefined) return null
  return (
    <p className={styles.lost} role="status">
      No connection to the server since {clockText(since, utc)}. The page asks again from time to time, and goes on by
      itself.
    </p>
  )
}
