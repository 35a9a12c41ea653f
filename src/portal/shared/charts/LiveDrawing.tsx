import { useComputedColorScheme } from "@mantine/core"
import { type KeyboardEvent, useEffect, useRef } from "react"
import uPlot from "uplot"
import "uplot/dist/uPlot.min.css"
import { useUtc } from "../../address/useUtc.ts"
import { tickText } from "../words/format.ts"
import { colorOf } from "./colors.ts"
import styles from "./LiveChart.module.css"
import { pointSentence } from "./peak.ts"
import type { LiveChartProps } from "./series.ts"

/** A canvas knows no variables of CSS, so they are resolved when the drawing is made. */
const resolved = (element: Element, color: string): string => {
  const name = /^var\((--[\w-]+)\)$/.exec(color)?.[1]
  return name === undefined ? color : getComputedStyle(element).getPropertyValue(name).trim()
}

const faint = (color: string): string => `color-mix(in srgb, ${color} 18%, transparent)`

const dataOf = ({ points, series }: Pick<LiveChartProps, "points" | "series">): uPlot.AlignedData => [
  points.map(({ at }) => at / 1_000),
  ...series.map(({ key }) => points.map(({ values }) => values[key] ?? null))
]

/** Counts have no halves. */
const wholeSteps = [1, 2, 5]
  .flatMap((step) => [step, step * 10, step * 100, step * 1_000, step * 10_000])
  .sort((a, b) => a - b)

interface Props extends LiveChartProps {
  /** The time of the point that the arrow keys have reached. */
  readonly readAt: number | undefined
  readonly onRead: (at: number | undefined) => void
}

const LiveDrawing = ({ bucketMs, format, height = 90, label, onRead, points, readAt, series }: Props) => {
  const utc = useUtc()
  const holder = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const scheme = useComputedColorScheme()
  const names = series.map(({ key }) => key).join(" ")

  // biome-ignore lint/correctness/useExhaustiveDependencies: the drawing is made anew for other series and colours alone
  useEffect(() => {
    const element = holder.current
    if (element === null) return
    const muted = resolved(element, "var(--muted)")
    const axis: uPlot.Axis = {
      stroke: muted,
      font: "11px system-ui, sans-serif",
      grid: { show: false },
      ticks: { show: false }
    }
    const made = new uPlot(
      {
        width: element.clientWidth,
        height,
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most)] } },
        axes: [
          {
            ...axis,
            size: 22,
            space: 70,
            values: (_, seconds) => seconds.map((at) => tickText(new Date(at * 1_000), bucketMs, utc))
          },
          {
            ...axis,
            size: 46,
            incrs: wholeSteps,
            values: (_, values) => values.map(format),
            grid: { stroke: resolved(element, "var(--line)"), width: 1 }
          }
        ],
        series: [
          {},
          ...series.map((one, place) => {
            const color = resolved(element, colorOf(one, place))
            return { label: one.label, stroke: color, fill: faint(color), width: 1.5, points: { show: false } }
          })
        ]
      },
      dataOf({ points, series }),
      element
    )
    plot.current = made
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
    }
  }, [names, scheme, height, bucketMs, utc])

  useEffect(() => plot.current?.setData(dataOf({ points, series })), [points, series])

  const place = points.findIndex(({ at }) => at === readAt)
  useEffect(() => {
    const left = place < 0 || readAt === undefined ? -1 : (plot.current?.valToPos(readAt / 1_000, "x") ?? -1)
    plot.current?.setCursor({ left, top: 0 }, false)
  }, [place, readAt])

  const read = points[place]
  const press = (event: KeyboardEvent) => {
    const last = points.length - 1
    const from = place < 0 ? points.length : place
    const moves: Readonly<Record<string, number>> = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }
    const next = moves[event.key]
    if (next === undefined) return
    event.preventDefault()
    onRead(points[Math.max(0, Math.min(last, next))]?.at)
  }
  return (
    <div
      ref={holder}
      className={styles.drawing}
      style={{ height }}
      // readers of the screen say the text of a slider with each press of an arrow
      role="slider"
      tabIndex={0}
      aria-label={`${label}, by the arrow keys`}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, points.length - 1)}
      aria-valuenow={read === undefined ? Math.max(0, points.length - 1) : place}
      aria-valuetext={read === undefined ? "no point" : pointSentence(read, { bucketMs, format, series }, utc)}
      onKeyDown={press}
      onBlur={() => onRead(undefined)}
    />
  )
}

export default LiveDrawing
