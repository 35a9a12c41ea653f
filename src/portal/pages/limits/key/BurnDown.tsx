import { Button } from "@mantine/core"
import { useMemo } from "react"
import { useNow } from "../../../address/useNow.ts"
import { useUtc } from "../../../address/useUtc.ts"
import { useApi } from "../../../api/queries.ts"
import { Meter } from "../../../shared/charts/Meter.tsx"
import { TimeChart } from "../../../shared/charts/TimeChart.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { clockText, moneyText, weekdayText } from "../../../shared/words/format.ts"
import { RaiseEnds } from "../../../shared/words/LimitWords.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "../state/Limits.module.css"
import type { LimitState } from "../state/limitStates.ts"
import { burnDown, windowOf } from "./burnDownPoints.ts"

interface Props {
  readonly state: LimitState
  readonly onOpen?: () => void
}

const series = [
  { key: "left", label: "left", color: "var(--series-3)" },
  { key: "even", label: "at the rate of this window", color: "var(--series-5)" },
  { key: "latest", label: "at the latest rate", color: "var(--series-6)" }
] as const

const minuteMs = 60_000

/** The filter that finds the records which a limit counts. Global limits count all of them. */
const filterOf = ({ scope, scope_id }: LimitState) => {
  if (scope_id === null) return {}
  switch (scope) {
    case "key":
      return { key_id: scope_id }
    case "project":
      return { project_id: scope_id }
    case "team":
      return { team_id: scope_id }
    case "model":
      return { model: scope_id }
    case "route":
      return { route: scope_id }
    default:
      return {}
  }
}

/** How a budget is used up over its window, and when it ends. */
export const BurnDown = ({ onOpen, state }: Props) => {
  const now = useNow(minuteMs)
  const utc = useUtc()
  const window = useMemo(() => windowOf(state), [state])
  const spent = useApi("/admin-ui/admin/usage/timeseries", {
    query: {
      ...filterOf(state),
      from: new Date(window.from).toISOString(),
      interval: state.window === "month" ? "day" : "hour"
    }
  })
  const burn = useMemo(() => burnDown(state, window, spent.data ?? [], now), [state, window, spent.data, now])
  const { remaining, used } = state
  const isCounted = used !== null && remaining !== null
  const reset = `resets ${clockText(new Date(window.to), utc)}`
  return (
    <div className={styles.budget}>
      <p className={styles.line}>
        {isCounted ? (
          <EndSentence state={state} latest={spent.data === undefined ? "unknown" : burn.endsAtLatestRate} />
        ) : (
          <strong>When it ends is not known.</strong>
        )}
        {state.raised_until !== null && (
          <span className={styles.muted}>
            It is <RaiseEnds at={state.raised_until} />.
          </span>
        )}
        {onOpen !== undefined && (
          <Button variant="subtle" onClick={onOpen}>
            Look and act
          </Button>
        )}
      </p>
      {!isCounted && (
        <p>
          What is left of {moneyText(state.limit)} is not known: the counter cannot be read. It {reset}.
        </p>
      )}
      {isCounted && (
        <>
          <Meter
            label={`${state.meter} of ${state.scope_name}`}
            used={used}
            reserved={state.reserved ?? 0}
            limit={state.limit}
            format={moneyText}
          />
          {spent.data === undefined && spent.error !== null ? (
            <ErrorNote error={spent.error} onRetry={() => spent.refetch()} />
          ) : (
            <TimeChart
              label={`What is left of ${state.meter}`}
              kind="lines"
              series={series}
              points={burn.points}
              format={moneyText}
              bucketMs={window.step}
              height={150}
              sentence={`${moneyText(remaining)} left of ${moneyText(state.limit)}; ${reset}.`}
            />
          )}
        </>
      )}
    </div>
  )
}

interface EndProps {
  readonly state: LimitState
  /** The time at which the budget ends at the latest rate. `unknown` until the records are read. */
  readonly latest: number | "unknown" | undefined
}

const EndSentence = ({ latest, state }: EndProps) => {
  const utc = useUtc()
  const { forecast } = state
  const even = forecast === null ? undefined : Date.parse(forecast)
  if ((state.remaining ?? 1) <= 0)
    return (
      <strong>
        Used up. It resets <When at={state.resets_at} />.
      </strong>
    )
  const known = latest === "unknown" ? undefined : latest
  const ends = [even, known].filter((at) => at !== undefined).sort((a, b) => a - b)
  const [first, last] = ends
  if (first === undefined)
    return (
      <span>{latest === "unknown" ? "Whether it lasts until its reset is not known." : "Lasts until its reset."}</span>
    )
  const isOneAlone = last === undefined && latest !== "unknown"
  return (
    <strong>
      Used up {weekdayText(new Date(first), utc)}
      {last !== undefined && toEnd(first, last, utc)} at this rate{isOneAlone && ", or not before its reset"}.
    </strong>
  )
}

const toEnd = (first: number, last: number, utc: boolean): string =>
  last - first > minuteMs * 30 ? ` to ${weekdayText(new Date(last), utc)}` : ""
