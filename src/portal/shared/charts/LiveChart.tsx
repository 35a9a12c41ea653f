import { Skeleton } from "@mantine/core"
import { useState } from "react"
import { useUtc } from "../../address/useUtc.ts"
import { laterFile, useLaterPart } from "../../api/laterFile.ts"
import { Segments } from "../page/Segments.tsx"
import { Legend } from "./Legend.tsx"
import styles from "./LiveChart.module.css"
import { peakSentence, pointSentence } from "./peak.ts"
import type { LiveChartProps } from "./series.ts"
import { TimeTable } from "./TimeTable.tsx"

const drawing = laterFile(() => import("./LiveDrawing.tsx"))

/** A dense chart that changes several times a second: a drawing on a canvas, the sentence, and the same as a table. */
export const LiveChart = (props: LiveChartProps) => {
  const [view, setView] = useState("chart")
  const Drawing = useLaterPart(drawing)?.default
  const utc = useUtc()
  const [readAt, setReadAt] = useState<number>()
  const { height = 90, label, points, series } = props
  const read = readAt === undefined ? undefined : points.find(({ at }) => at === readAt)
  return (
    <figure className={styles.chart} aria-label={label}>
      <figcaption className={styles.caption}>
        <span>{read === undefined ? peakSentence(props, true, utc) : pointSentence(read, props, utc)}</span>
        <Segments
          aria-label={`Show ${label} as`}
          data={[
            { value: "chart", label: "Chart" },
            { value: "table", label: "Table" }
          ]}
          value={view}
          onChange={setView}
        />
      </figcaption>
      {view === "table" ? (
        <TimeTable {...props} kind="lines" />
      ) : Drawing === undefined ? (
        <Skeleton height={height} />
      ) : (
        <Drawing {...props} height={height} readAt={readAt} onRead={setReadAt} />
      )}
      <Legend series={series} />
    </figure>
  )
}
