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

const barOf = (key: string, label: string, from: number, ms: number): Bar => ({
  key,
  kind: "guardrail",
  label,
  from,
  ms
})

const oneAfterTheOther = (ran: Props["guardrails"], from: number): ReadonlyArray<Bar> => {
  let at = from
  return ran.map(({ latency_ms, name }) => {
    const bar = barOf(`before ${name}`, name, at, latency_ms)
    at += latency_ms
    return bar
  })
}

/** Where the time went: one bar below the other, each where it began. */
export const Timing = ({ guardrails, row }: Props) => {
  const whole = Math.max(1, row.latency_ms)
  const [first, ...rest] = partsOf(row)
  const before = guardrails.filter(({ mode }) => mode === "pre_call")
  const bars = [
    ...(first === undefined ? [] : [{ ...first, key: first.kind }]),
    ...oneAfterTheOther(before, first === undefined ? 0 : first.from + first.ms),
    // together until it is known which ran
    ...rest
      .filter(({ kind }) => kind !== "guardrail" || before.length === 0)
      .map((part) => ({ ...part, key: part.kind }))
  ]
  const after = guardrails
    .filter(({ mode }) => mode !== "pre_call")
    .map(({ latency_ms, name }) => barOf(`after ${name}`, name, Math.max(0, whole - latency_ms), latency_ms))
  return (
    <>
      <dl className={styles.rows}>
        {[...bars, ...after].map(({ from, key, kind, label, ms }) => (
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
