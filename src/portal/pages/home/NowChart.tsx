import { useLiveState } from "../../api/live.ts"
import { LiveChart } from "../../shared/charts/LiveChart.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { rateSeries, useRequestRate } from "../../shared/usage/useRequestRate.ts"
import { countText } from "../../shared/words/format.ts"

/** Requests as they end, by the second. */
export const NowChart = () => {
  const points = useRequestRate()
  const state = useLiveState()
  return (
    <Panel
      title="Now"
      note={state === "live" ? "requests that end, by the second" : state}
      actions={
        <LinkButton variant="subtle" path="/requests">
          Follow them
        </LinkButton>
      }
    >
      <LiveChart
        label="Requests that end, by the second"
        series={rateSeries}
        points={points}
        format={(count) => `${countText(count)}/s`}
        bucketMs={1_000}
        height={170}
      />
    </Panel>
  )
}
