import { useNow } from "../../../address/useNow.ts"
import { durationText } from "../../../shared/words/format.ts"
import styles from "./Task.module.css"

/** The time until a task is tried again. */
export const Countdown = ({ until }: { readonly until: string | null }) => {
  const now = useNow(1_000)
  if (until === null) return null
  const left = Date.parse(until) - Math.max(now, Date.now())
  return (
    <span className={styles.countdown} role="timer">
      {left > 0 ? `next attempt in ${durationText(Math.ceil(left / 1_000) * 1_000)}` : "next attempt is due"}
    </span>
  )
}
