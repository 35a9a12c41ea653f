import { type LiveState, toggleLive, useLiveState } from "../api/live.ts"
import styles from "./TopBar.module.css"

const sentences: Readonly<Record<LiveState, string>> = {
  live: "What you see changes as it happens. Press l to pause.",
  paused: "Nothing changes by itself. Press l to go on.",
  reconnecting: "The connection was lost. What is missed appears once it is back.",
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
