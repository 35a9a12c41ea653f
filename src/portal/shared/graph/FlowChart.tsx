import { Skeleton } from "@mantine/core"
import { lazy, Suspense } from "react"
import type { FlowProps } from "./drawn.ts"
import styles from "./Flow.module.css"

/** The library of graphs arrives with the first graph. */
const Drawing = lazy(() => import("./FlowDrawing.tsx"))

/** Nodes and edges from the left to the right. They are moved and zoomed, and reached with the keyboard. */
export const FlowChart = (props: FlowProps) => (
  <div className={styles.graph}>
    <Suspense fallback={<Skeleton height="100%" />}>
      <Drawing {...props} />
    </Suspense>
  </div>
)
