import { useComputedColorScheme } from "@mantine/core"
import { useEffect, useRef } from "react"
import uPlot from "uplot"
import "uplot/dist/uPlot.min.css"
import { colorOf } from "./colors.ts"
import styles from "./LiveChart.module.css"
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

const LiveDrawing = ({ format, height = 90, label, points, series }: LiveChartProps) => {
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
        cursor: { show: false },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most)] } },
        axes: [
          { ...axis, size: 22 },
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
  }, [names, scheme, height])

  useEffect(() => plot.current?.setData(dataOf({ points, series })), [points, series])

  return <div ref={holder} className={styles.drawing} style={{ height }} role="img" aria-label={label} />
}

export default LiveDrawing
