import { useLiveState } from "../../../api/live.ts"
import { LiveChart } from "../../../shared/charts/LiveChart.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { rateSeries, useRequestRate } from "../../../shared/usage/useRequestRate.ts"
import { countText } from "../../../shared/words/format.ts"

const rateText = (count: number): string => `${countText(count)}/s`

/** All requests of the installation by the second. The feed counts each of them, also where it describes a few. */
export const RateChart = () => {
  const points = useRequestRate()
  const state = useLiveState()
  return (
    <Panel title="Now" note={state === "live" ? "all requests that end, by the second" : state}>
      <LiveChart
        label="Requests that end, by the second"
        series={rateSeries}
        points={points}
        format={rateText}
        bucketMs={1_000}
        height={110}
      />
    </Panel>
  )
}
