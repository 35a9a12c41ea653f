import { useReducedMotion } from "@mantine/hooks"
import {
  Area,
  Bar,
  CartesianGrid,
  ComposedChart,
  Line,
  ReferenceLine,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis
} from "recharts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { bucketText, tickText } from "../words/format.ts"
import { colorOf } from "./colors.ts"
import type { Series, TimeChartProps } from "./series.ts"
import styles from "./TimeChart.module.css"

const TimeDrawing = ({ bucketMs, format, height = 200, kind, line, onPick, points, series }: TimeChartProps) => {
  const isStill = useReducedMotion()
  const data = points.map(({ at, values }) => ({ at, ...values }))
  return (
    <>
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
            tickFormatter={(at: number) => tickText(new Date(at), bucketMs)}
            tick={{ className: styles.tick ?? "" }}
            stroke="var(--line-strong)"
            minTickGap={40}
          />
          <YAxis
            width={58}
            tickFormatter={format}
            tick={{ className: styles.tick ?? "" }}
            stroke="var(--line-strong)"
          />
          <Tooltip
            isAnimationActive={false}
            content={({ active, label, payload }) =>
              active ? (
                <Hint
                  at={Number(label)}
                  bucketMs={bucketMs}
                  rows={payload.map(({ dataKey, value }) => [String(dataKey), Number(value)] as const)}
                  series={series}
                  format={format}
                />
              ) : null
            }
          />
          {series.map((one, place) => drawingOf(kind, one, colorOf(one, place), isStill !== true))}
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
      {series.length > 1 && (
        <ul className={styles.legend}>
          {series.map((one, place) => (
            <li key={one.key}>
              <span className={styles.swatch} style={{ background: colorOf(one, place) }} />
              <ForeignText>{one.label}</ForeignText>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

/** Recharts looks for these elements themselves among the children, so they cannot be components of ours. */
const drawingOf = (kind: TimeChartProps["kind"], { key, label }: Series, color: string, isAnimated: boolean) => {
  const shared = { dataKey: key, name: label, isAnimationActive: isAnimated, animationDuration: 200 }
  if (kind === "bars") return <Bar key={key} {...shared} stackId="all" fill={color} />
  if (kind === "lines")
    return <Line key={key} {...shared} stroke={color} strokeWidth={1.7} dot={false} connectNulls={false} />
  return <Area key={key} {...shared} stackId="all" stroke={color} fill={color} fillOpacity={0.35} />
}

interface HintProps {
  readonly at: number
  readonly bucketMs: number
  readonly rows: ReadonlyArray<readonly [key: string, value: number]>
  readonly series: ReadonlyArray<Series>
  readonly format: (value: number) => string
}

const Hint = ({ at, bucketMs, format, rows, series }: HintProps) => (
  <div className={styles.hint}>
    <strong>{bucketText(new Date(at), bucketMs)}</strong>
    {rows.map(([key, value]) => {
      const place = series.findIndex((one) => one.key === key)
      const one = series[place]
      if (one === undefined) return null
      return (
        <p key={key}>
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
