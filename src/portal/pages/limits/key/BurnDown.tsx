import { Button } from "@mantine/core"
import { useMemo } from "react"
import { useNow } from "../../../address/useNow.ts"
import { useApi } from "../../../api/queries.ts"
import { Meter } from "../../../shared/charts/Meter.tsx"
import { TimeChart } from "../../../shared/charts/TimeChart.tsx"
import { clockText, moneyText } from "../../../shared/words/format.ts"
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
  const window = useMemo(() => windowOf(state), [state])
  const spent = useApi("/admin-ui/admin/usage/timeseries", {
    query: {
      ...filterOf(state),
      from: new Date(window.from).toISOString(),
      interval: state.window === "month" ? "day" : "hour"
    }
  })
  const burn = useMemo(() => burnDown(state, window, spent.data ?? [], now), [state, window, spent.data, now])
  return (
    <div className={styles.budget}>
      <p className={styles.line}>
        <EndSentence state={state} latest={burn.endsAtLatestRate} />
        {onOpen !== undefined && (
          <Button variant="subtle" onClick={onOpen}>
            Look and act
          </Button>
        )}
      </p>
      <Meter
        label={`${state.meter} of ${state.scope_name}`}
        used={state.used ?? 0}
        reserved={state.reserved ?? 0}
        limit={state.limit}
        format={moneyText}
      />
      <TimeChart
        label={`What is left of ${state.meter}`}
        kind="lines"
        series={series}
        points={burn.points}
        format={moneyText}
        bucketMs={window.step}
        height={150}
        sentence={`${moneyText(state.remaining ?? 0)} left of ${moneyText(state.limit)}; resets ${clockText(new Date(window.to), false)}.`}
      />
    </div>
  )
}

const EndSentence = ({ latest, state }: { readonly state: LimitState; readonly latest: number | undefined }) => {
  const { forecast } = state
  const even = forecast === null ? undefined : Date.parse(forecast)
  if ((state.remaining ?? 1) <= 0)
    return (
      <strong>
        Used up. It resets <When at={state.resets_at} />.
      </strong>
    )
  const ends = [even, latest].filter((at) => at !== undefined).sort((a, b) => a - b)
  const [first, last] = ends
  if (first === undefined) return <span>Lasts until its reset.</span>
  return (
    <strong>
      Ends {dayText(first)}
      {last === undefined
        ? ", or not before its reset"
        : Math.abs(last - first) > minuteMs * 30
          ? ` to ${dayText(last)}`
          : ""}
      .
    </strong>
  )
}

const dayText = (at: number): string =>
  new Intl.DateTimeFormat("en-GB", { weekday: "long", hour: "2-digit", minute: "2-digit" }).format(at)
