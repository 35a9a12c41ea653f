import { Fragment } from "react"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"
import { durationText, percentText } from "../../../shared/words/format.ts"
import { partsOf } from "../list/parts.ts"
import styles from "./Timing.module.css"
import type { Bundle } from "./useRequest.ts"

interface Props {
  readonly row: UsageRow
  readonly guardrails: Bundle["guardrails"]
}

interface Bar {
  readonly key: string
  readonly kind: string
  readonly label: string
  readonly from: number
  readonly ms: number
}

/** Where the time went: one bar below the other, each where it began. */
export const Timing = ({ guardrails, row }: Props) => {
  const parts = partsOf(row)
  const whole = Math.max(1, row.latency_ms)
  const bars: ReadonlyArray<Bar> = [
    ...parts.slice(0, 1).map((part) => ({ ...part, key: part.kind })),
    ...guardrails
      .filter(({ mode }) => mode === "pre_call")
      .map(({ latency_ms, name }) => ({
        key: `before ${name}`,
        kind: "guardrail",
        label: name,
        from: 0,
        ms: latency_ms
      })),
    ...parts.slice(1).map((part) => ({ ...part, key: part.kind })),
    ...guardrails
      .filter(({ mode }) => mode !== "pre_call")
      .map(({ latency_ms, name }) => ({
        key: `after ${name}`,
        kind: "guardrail",
        label: name,
        from: Math.max(0, whole - latency_ms),
        ms: latency_ms
      }))
  ]
  return (
    <>
      <dl className={styles.rows}>
        {bars.map(({ from, key, kind, label, ms }) => (
          <Fragment key={key}>
            <dt>
              <ForeignText>{label}</ForeignText>
            </dt>
            <dd className={styles.track} aria-hidden="true">
              <span
                className={styles.bar}
                data-kind={kind}
                style={{
                  left: `${Math.min(99, (from / whole) * 100)}%`,
                  width: `${Math.min(100, (ms / whole) * 100)}%`
                }}
              />
            </dd>
            <dd className={styles.duration}>{durationText(ms)}</dd>
          </Fragment>
        ))}
        <dt>Together</dt>
        <dd />
        <dd className={styles.duration}>{durationText(row.latency_ms)}</dd>
      </dl>
      {row.gateway_ms !== null && <p>The gateway took {percentText(row.gateway_ms, whole)} of it.</p>}
    </>
  )
}
