import { Tile, Tiles } from "../../../shared/page/Tile.tsx"
import { countText, percentText } from "../../../shared/words/format.ts"
import styles from "./Breakdown.module.css"
import { changeText } from "./compared.ts"
import { measureOf } from "./measures.ts"
import type { BreakdownData } from "./useBreakdown.ts"

const shown = ["requests", "cost", "tokens", "failures", "latency"] as const

/** The range as a whole, and how it differs from the compared one. */
export const UsageTiles = ({ data: { total, totalBefore } }: { readonly data: BreakdownData }) => (
  <Tiles>
    {shown.map((name) => {
      const { format, label, of } = measureOf(name)
      const [now, before] = [total.data, totalBefore.data]
      return (
        <Tile
          key={name}
          label={label}
          query={total}
          value={now && format(of(now))}
          detail={
            now !== undefined && before !== undefined
              ? of(before) === 0
                ? "nothing before"
                : `${changeText(of(now), of(before))}, was ${format(of(before))}`
              : undefined
          }
        />
      )
    })}
    <Sources query={total} />
  </Tiles>
)

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
