import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"
import { durationText } from "../../../shared/words/format.ts"
import styles from "./LatencyBar.module.css"
import { partsOf } from "./parts.ts"

interface Props {
  readonly row: UsageRow
  /** The duration that fills the bar. */
  readonly longest: number
}

/** How long a request took, and with what. */
export const LatencyBar = ({ longest, row }: Props) => {
  const parts = partsOf(row)
  return (
    <div className={styles.cell}>
      <div
        className={styles.bar}
        aria-hidden="true"
        title={parts.map(({ label, ms }) => `${label} ${durationText(ms)}`).join(" · ")}
      >
        {parts.map(({ kind, ms }) => (
          <span key={kind} className={styles[kind]} style={{ width: `${(ms / longest) * 100}%` }} />
        ))}
      </div>
      <span>{durationText(row.latency_ms)}</span>
    </div>
  )
}
