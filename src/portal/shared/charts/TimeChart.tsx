import { Skeleton } from "@mantine/core"
import { useState } from "react"
import { useUtc } from "../../address/useUtc.ts"
import { laterFile, useLaterPart } from "../../api/laterFile.ts"
import { Segments } from "../page/Segments.tsx"
import { peakSentence } from "./peak.ts"
import type { TimeChartProps } from "./series.ts"
import styles from "./TimeChart.module.css"
import { TimeTable } from "./TimeTable.tsx"

/** The library of charts is as large as all else that a page loads. It begins once the rest of the page is drawn. */
const drawing = laterFile(() => import("./TimeDrawing.tsx"))

/** Values over time: a drawing, the sentence that sums it up, and the same as a table. */
export const TimeChart = (props: TimeChartProps) => {
  const [view, setView] = useState("chart")
  const Drawing = useLaterPart(drawing)?.default
  const utc = useUtc()
  const { height = 200, kind, label, sentence } = props
  return (
    <figure className={styles.chart} aria-label={label}>
      <figcaption className={styles.caption}>
        <span>{sentence ?? peakSentence(props, kind !== "lines", utc)}</span>
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
        <TimeTable {...props} />
      ) : Drawing === undefined ? (
        <Skeleton height={height} />
      ) : (
        <Drawing {...props} height={height} />
      )}
    </figure>
  )
}
