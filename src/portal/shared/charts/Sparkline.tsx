import styles from "./Sparkline.module.css"

interface Props {
  readonly values: ReadonlyArray<number>
  /** Says what the line shows, such as "Requests in the last 15 minutes, at most 412". */
  readonly label: string
  readonly height?: number
}

const width = 100

/** The shape of a short series. It has no axes; a chart has the numbers. */
export const Sparkline = ({ height = 26, label, values }: Props) => {
  // amounts of money may all be below one dollar
  const most = Math.max(0, ...values) || 1
  const step = values.length > 1 ? width / (values.length - 1) : width
  const points = values.map(
    (value, place) => `${(place * step).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`
  )
  return (
    <svg
      className={styles.line}
      viewBox={`0 0 ${width} ${height}`}
      height={height}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polygon className={styles.area} points={`0,${height} ${points.join(" ")} ${width},${height}`} />
      <polyline className={styles.stroke} points={points.join(" ")} />
    </svg>
  )
}
