import { Sparkline } from "../../shared/charts/Sparkline.tsx"
import { IdLink } from "../../shared/links/IdLink.tsx"
import { Tile, Tiles } from "../../shared/page/Tile.tsx"
import { countText, decimalText, durationText, moneyText, percentText } from "../../shared/words/format.ts"
import styles from "./Home.module.css"
import { useLastHour, useOverhead, useQueues, useSpend } from "./useNumbers.ts"

const quarter = 15

/** Is it well, what does it cost, what needs me: one number each. */
export const HomeTiles = () => {
  const hour = useLastHour()
  // the page asks for it, too, but after all of its parts, and browsers have six requests under way at once
  const spend = useSpend()
  const { query: overhead, quantiles } = useOverhead()
  const queues = useQueues()
  const recent = hour.minutes.slice(-quarter)
  const perSecond = recent.reduce((sum, count) => sum + count, 0) / (quarter * 60)
  return (
    <Tiles>
      <Tile
        label="Requests a second"
        query={hour.query}
        value={rateText(perSecond)}
        detail="the last 15 minutes"
        chart={
          <div className={styles.spark}>
            <Sparkline
              values={recent}
              label={`Requests by the minute in the last 15 minutes, at most ${countText(Math.max(0, ...recent))}`}
            />
          </div>
        }
      />
      <Tile
        label="Refused / errors"
        query={hour.query}
        isLong={true}
        value={
          <>
            <span className={styles.whole}>{percentText(hour.refused, hour.requests)}</span> /{" "}
            <span className={styles.whole}>{percentText(hour.errors, hour.requests)}</span>
          </>
        }
        detail={`${countText(hour.refused)} refused, ${countText(hour.errors)} with status 5xx in the last hour`}
      />
      <Tile
        label="Our overhead"
        query={overhead}
        value={<IdLink path="/system">{timeText(quantiles?.gateway_ms?.p50)}</IdLink>}
        detail={
          overhead.data !== undefined && quantiles === undefined
            ? "no request succeeded in this hour"
            : `p95 ${timeText(quantiles?.gateway_ms?.p95)}; the upstream's ${timeText(quantiles?.upstream_ms?.p50)}, p95 ${timeText(quantiles?.upstream_ms?.p95)}`
        }
      />
      <Tile
        label="Spend today"
        query={spend.query}
        isLong={true}
        value={moneyText(spend.today)}
        detail={`${moneyText(spend.yesterday)} in all of yesterday; ${moneyText(spend.month)} this month, about ${moneyText(spend.projected)} by its end`}
      />
      {queues.isThere && (
        <>
          <Tile
            label="Dead letters"
            query={queues.letters}
            value={<IdLink path="/dead-letters">{countText(queues.openLetters)}</IdLink>}
            detail="open, in all queues"
          />
          <Tile
            label="Tasks"
            query={queues.query}
            value={<IdLink path="/tasks/board">{countText(queues.running)}</IdLink>}
            detail={`running; ${countText(queues.waiting)} waiting`}
          />
        </>
      )}
    </Tiles>
  )
}

const rateText = (rate: number): string =>
  rate > 0 && rate < 0.01 ? "< 0.01" : decimalText(rate, rate < 1 ? 2 : rate < 100 ? 1 : 0)

// what is not known is about as wide as what will be: no line is added once it is there
const timeText = (ms: number | undefined): string => (ms === undefined ? "–" : durationText(ms))
