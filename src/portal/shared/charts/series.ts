export interface Series {
  /** The name of its values in the points. */
  readonly key: string
  readonly label: string
  /** A CSS colour. Without one, it is the next of the palette. */
  readonly color?: string
}

export interface TimePoint {
  /** Milliseconds. */
  readonly at: number
  readonly values: Readonly<Record<string, number | null>>
}

export interface TimeChartProps {
  /** What is shown, for readers of the screen. */
  readonly label: string
  readonly kind: "area" | "bars" | "lines"
  readonly series: ReadonlyArray<Series>
  readonly points: ReadonlyArray<TimePoint>
  readonly format: (value: number) => string
  /** The length of a bucket, in milliseconds: ticks show days or times by it. */
  readonly bucketMs: number
  /** A line across the chart, such as a budget. */
  readonly line?: { readonly value: number; readonly label: string }
  /** A click on a bucket, or Enter at it, such as to look at its time alone. */
  readonly onPick?: (at: number) => void
  readonly height?: number
  /** Sums the chart up. Without it the sentence names the peak. */
  readonly sentence?: string
}

export interface LiveChartProps {
  readonly label: string
  readonly series: ReadonlyArray<Series>
  /** One for each bucket, also where nothing happened. */
  readonly points: ReadonlyArray<TimePoint>
  readonly format: (value: number) => string
  readonly bucketMs: number
  readonly height?: number
}
