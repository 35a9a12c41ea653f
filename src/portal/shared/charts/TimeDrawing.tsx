import { useReducedMotion } from "@mantine/hooks"
import { type RefObject, useEffect, useRef } from "react"
import {
  Area,
  Bar,
  CartesianGrid,
  ComposedChart,
  Line,
  ReferenceLine,
  ResponsiveContainer,
  Tooltip,
  useActiveTooltipLabel,
  XAxis,
  YAxis
} from "recharts"
import { useUtc } from "../../address/useUtc.ts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { bucketText, tickText } from "../words/format.ts"
import { colorOf } from "./colors.ts"
import { Legend } from "./Legend.tsx"
import type { Series, TimeChartProps, TimePoint } from "./series.ts"
import { withGapsAtZero } from "./stack.ts"
import styles from "./TimeChart.module.css"

const TimeDrawing = ({ bucketMs, format, height = 200, kind, line, onPick, points, series }: TimeChartProps) => {
  const isStill = useReducedMotion()
  const utc = useUtc()
  const reached = useRef<number>(undefined)
  const data = (kind === "area" ? withGapsAtZero(points, series) : points).map(({ at, values }) => ({ at, ...values }))
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the drawing in it has the focus, and its own keys
    <div
      onKeyDown={({ key }) => {
        if (key === "Enter" && reached.current !== undefined) onPick?.(reached.current)
      }}
    >
      <ResponsiveContainer width="100%" height={height}>
        <ComposedChart
          data={data}
          margin={{ top: 6, right: 8, bottom: 0, left: 0 }}
          accessibilityLayer
          onClick={({ activeLabel }) => activeLabel !== undefined && onPick?.(Number(activeLabel))}
        >
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis
            dataKey="at"
            {...(kind === "lines" && {
              type: "number",
              scale: "time",
              domain: ["dataMin", "dataMax"],
              ticks: wholeTimes(points, bucketMs)
            })}
            tickFormatter={(at: number) => tickText(new Date(at), bucketMs, utc)}
            tick={{ className: styles.tick ?? "" }}
            stroke="var(--line-strong)"
            minTickGap={40}
          />
          <YAxis
            width={70}
            tickFormatter={format}
            // counts have no halves
            allowDecimals={!isWhole(points)}
            tick={{ className: styles.tick ?? "" }}
            stroke="var(--line-strong)"
          />
          <Tooltip
            isAnimationActive={false}
            content={({ active, label }) => {
              const point = active ? points.find(({ at }) => at === Number(label)) : undefined
              return (
                point !== undefined && (
                  <Hint point={point} bucketMs={bucketMs} utc={utc} series={series} format={format} />
                )
              )
            }}
          />
          {onPick !== undefined && <ReachedByKeys reached={reached} />}
          {series.map((one, place) => drawingOf(kind, one, colorOf(one, place), isStill !== true, points))}
          {line !== undefined && (
            <ReferenceLine
              y={line.value}
              stroke="var(--bad)"
              strokeDasharray="5 4"
              label={{ value: line.label, className: styles.tick ?? "" }}
            />
          )}
        </ComposedChart>
      </ResponsiveContainer>
      <Legend series={series} />
    </div>
  )
}

const isWhole = (points: TimeChartProps["points"]): boolean =>
  points.every(({ values }) => Object.values(values).every((value) => value === null || Number.isInteger(value)))

/** Lines may have points between the buckets, such as the present moment. */
const wholeTimes = (points: TimeChartProps["points"], bucketMs: number): ReadonlyArray<number> => {
  const [first] = points
  return points.map(({ at }) => at).filter((at) => (at - (first?.at ?? 0)) % bucketMs === 0)
}

/** Tells which bucket the arrow keys have reached, for Enter to pick it. */
const ReachedByKeys = ({ reached }: { readonly reached: RefObject<number | undefined> }) => {
  const label = useActiveTooltipLabel()
  useEffect(() => {
    reached.current = label === undefined ? undefined : Number(label)
  }, [reached, label])
  return null
}

/** Recharts looks for these elements themselves among the children, so they cannot be components of ours. */
const drawingOf = (
  kind: TimeChartProps["kind"],
  { key, label }: Series,
  color: string,
  isAnimated: boolean,
  points: TimeChartProps["points"]
) => {
  const shared = { dataKey: key, name: label, isAnimationActive: isAnimated, animationDuration: 200 }
  if (kind === "bars") return <Bar key={key} {...shared} stackId="all" fill={color} />
  if (kind === "lines")
    return (
      <Line key={key} {...shared} stroke={color} strokeWidth={1.7} dot={aloneIn(points, key)} connectNulls={false} />
    )
  return <Area key={key} {...shared} stackId="all" stroke={color} fill={color} fillOpacity={0.35} />
}

interface Place {
  readonly cx?: number | undefined
  readonly cy?: number | undefined
  readonly index?: number | undefined
  readonly stroke?: string | undefined
}

/** A line between gaps has no length: a point without neighbours is drawn as a dot. */
const aloneIn = (points: TimeChartProps["points"], key: string) => {
  const isKnown = (place: number) => points[place]?.values[key] != null
  return ({ cx, cy, index = -1, stroke }: Place) =>
    isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1) ? (
      <circle key={index} cx={cx} cy={cy} r={2} fill={stroke} />
    ) : (
      <g key={index} />
    )
}

interface HintProps {
  readonly point: TimePoint
  readonly bucketMs: number
  readonly utc: boolean
  readonly series: ReadonlyArray<Series>
  readonly format: (value: number) => string
}

const Hint = ({ bucketMs, format, point, series, utc }: HintProps) => (
  <div className={styles.hint}>
    <strong>{bucketText(new Date(point.at), bucketMs, utc)}</strong>
    {series.map((one, place) => {
      const value = point.values[one.key]
      if (value == null) return null
      return (
        <p key={one.key}>
          <span>
            <span className={styles.swatch} style={{ background: colorOf(one, place) }} />
            <ForeignText>{one.label}</ForeignText>
          </span>
          <span>{format(value)}</span>
        </p>
      )
    })}
  </div>
)

export default TimeDrawing
