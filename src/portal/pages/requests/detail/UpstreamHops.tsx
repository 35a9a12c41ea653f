import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"
import { durationText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "./RequestDetail.module.css"
import type { Bundle } from "./useRequest.ts"

interface Props {
  readonly bundle: Bundle
  readonly row: UsageRow
}

/** Which upstreams were tried, and why the next one was. */
export const UpstreamHops = ({ bundle: { fallback_history, selection_trace, upstream_latency_ms }, row }: Props) => (
  <div className={styles.stack}>
    {row.upstream_ms === null ? (
      <p className={styles.muted}>Nothing was sent upstream.</p>
    ) : (
      <ul className={styles.tree}>
        {fallback_history.map(({ from_provider, reason, status_code }) => (
          <li key={from_provider} className={styles.layer}>
            <StatusWord meaning="bad">{status_code ?? "failed"}</StatusWord>
            <ForeignText>{from_provider}</ForeignText> {reason !== null && <code>{reason}</code>}
          </li>
        ))}
        <li className={styles.layer}>
          <StatusWord meaning={row.status === "failure" ? "bad" : "good"}>{row.status_code}</StatusWord>
          <ForeignText>{row.service_name ?? row.provider}</ForeignText>
          {upstream_latency_ms !== null && <span>in {durationText(upstream_latency_ms)}</span>}
        </li>
      </ul>
    )}
    <ul className={styles.trace}>
      {selection_trace.map((line) => (
        <li key={line}>
          <code>{line}</code>
        </li>
      ))}
    </ul>
  </div>
)
