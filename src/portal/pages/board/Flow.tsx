import type { QueueView } from "../../api/TaskTypes.ts"
import { shortCountText } from "../../shared/words/format.ts"
import styles from "./Board.module.css"

const width = 84
const height = 26
const minutes = 60
const minuteMs = 60_000

const meaning = "In: what came within the 60 minutes. Out: what was done in them, also of what had come before."

/** What came into a queue (line) and what was done (area) in each minute of the last hour. */
export const Flow = ({ view: { last_hour, queue } }: { readonly view: QueueView }) => {
  const inOf = series(last_hour.minutes.map(({ at, in: count }) => [at, count ?? 0]))
  const outOf = series(last_hour.minutes.map(({ at, out }) => [at, out]))
  const most = Math.max(1, ...inOf, ...outOf)
  const points = (values: ReadonlyArray<number>) =>
    values.map(
      (value, place) =>
        `${((place / (minutes - 1)) * width).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`
    )
  return (
    <span className={styles.flow} title={meaning}>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${queue} in the last hour: ${last_hour.in} came and ${last_hour.out} were done, at most ${most} in a minute`}
      >
        <polygon className={styles.out} points={`0,${height} ${points(outOf).join(" ")} ${width},${height}`} />
        <polyline className={styles.in} points={points(inOf).join(" ")} />
      </svg>
      <span className={styles.sums}>
        <span>{shortCountText(last_hour.in)} in</span>
        <span>{shortCountText(last_hour.out)} out</span>
      </span>
    </span>
  )
}

/** The API leaves out minutes without a number. */
const series = (counts: ReadonlyArray<readonly [at: string, count: number]>): ReadonlyArray<number> => {
  const byMinute = new Map(counts.map(([at, count]) => [Math.floor(Date.parse(at) / minuteMs), count]))
  const last = Math.max(...byMinute.keys(), Math.floor(Date.now() / minuteMs))
  return Array.from({ length: minutes }, (_, place) => byMinute.get(last - minutes + 1 + place) ?? 0)
}
