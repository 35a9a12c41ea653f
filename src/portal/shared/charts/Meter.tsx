import { percentText } from "../words/format.ts"
import styles from "./Meter.module.css"

interface Props {
  /** What is measured, for readers of the screen. */
  readonly label: string
  readonly used: number
  /** Held for requests that are under way. */
  readonly reserved?: number
  readonly limit: number
  readonly format: (amount: number) => string
}

/** How much of a limit is used: a bar, and the words that say the same. */
export const Meter = ({ format, label, limit, reserved = 0, used }: Props) => {
  const share = (amount: number) => (limit <= 0 ? 100 : Math.min(100, (amount / limit) * 100))
  const total = share(used + reserved)
  const meaning = total >= 100 ? "bad" : total >= 80 ? "warning" : "good"
  const words = `${format(used)} of ${format(limit)}`
  return (
    <div className={styles.meter}>
      {/* biome-ignore lint/a11y/useSemanticElements: the element has no place for what is reserved */}
      <div
        className={styles.track}
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(total)}
        aria-valuetext={words}
      >
        <div className={styles.reserved} style={{ width: `${total}%` }} />
        <div className={styles.used} data-meaning={meaning} style={{ width: `${share(used)}%` }} />
      </div>
      <span className={styles.words}>
        {words} <span className={styles.percent}>{percentText(used, limit)}</span>
      </span>
    </div>
  )
}
