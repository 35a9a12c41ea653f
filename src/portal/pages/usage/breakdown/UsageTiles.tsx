import { Tile, Tiles } from "../../../shared/page/Tile.tsx"
import { countText, percentText } from "../../../shared/words/format.ts"
import styles from "./Breakdown.module.css"
import { changeText } from "./compared.ts"
import { combined, type Measure, measureOf } from "./measures.ts"
import type { BreakdownData } from "./useBreakdown.ts"

const shown = ["requests", "cost", "tokens", "failures", "latency"] as const

/** The range as a whole, and how it differs from the compared one. */
export const UsageTiles = ({ data: { total, totalBefore } }: { readonly data: BreakdownData }) => (
  <Tiles>
    {shown.map((name) => {
      const measure = measureOf(name)
      const now = total.data && combined(measure, [total.data])
      const before = totalBefore.data && combined(measure, [totalBefore.data])
      return (
        <Tile
          key={name}
          label={measure.label}
          query={total}
          value={now === null ? "–" : now !== undefined && measure.format(now)}
          detail={now !== undefined && before !== undefined && beforeText(measure, now, before)}
        />
      )
    })}
    <Sources query={total} />
  </Tiles>
)

/** `null`: an average of no request. */
const beforeText = ({ format }: Measure, now: number | null, before: number | null): string => {
  if (before === null || before === 0) return "nothing before"
  return now === null ? `was ${format(before)}` : `${changeText(now, before)}, was ${format(before)}`
}

/** How far the numbers can be relied upon: what the upstream reported, and what was estimated. */
const Sources = ({ query }: { readonly query: BreakdownData["total"] }) => {
  const sum = query.data
  const known = sum === undefined ? 0 : sum.reported_count + sum.estimated_count
  return (
    <Tile
      label="Reported tokens"
      query={query}
      value={sum && percentText(sum.reported_count, known)}
      detail={sum && `${countText(sum.estimated_count)} estimated, ${countText(sum.status_only_count)} unknown`}
      chart={
        sum !== undefined &&
        known > 0 && (
          <div className={styles.sources} aria-hidden="true">
            <span className={styles.reported} style={{ width: `${(sum.reported_count / known) * 100}%` }} />
            <span className={styles.estimated} style={{ width: `${(sum.estimated_count / known) * 100}%` }} />
          </div>
        )
      }
    />
  )
}
