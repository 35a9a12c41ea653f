import { Tooltip } from "@mantine/core"
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
      <Tooltip label={parts.map(({ label, ms }) => `${label} ${durationText(ms)}`).join(" · ")} withinPortal>
        <div className={styles.bar} aria-hidden="true">
          {parts.map(({ kind, ms }) => (
            <span key={kind} className={styles[kind]} style={{ width: `${(ms / longest) * 100}%` }} />
          ))}
        </div>
      </Tooltip>
      <span>{durationText(row.latency_ms)}</span>
    </div>
  )
}
