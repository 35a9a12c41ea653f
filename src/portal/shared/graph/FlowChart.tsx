import { Skeleton } from "@mantine/core"
import { laterFile, useLaterPart } from "../../api/laterFile.ts"
import type { FlowProps } from "./drawn.ts"
import styles from "./Flow.module.css"

/** The library of graphs arrives with the first graph. */
const drawing = laterFile(() => import("./FlowDrawing.tsx"))

/** Nodes and edges from the left to the right. Its arrow keys move it, and Tab goes from node to node. */
export const FlowChart = (props: FlowProps) => {
  const Drawing = useLaterPart(drawing)?.default
  return (
    <div className={styles.graph}>{Drawing === undefined ? <Skeleton height="100%" /> : <Drawing {...props} />}</div>
  )
}
