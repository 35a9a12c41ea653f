import { type Attributes, attributesOf, bytesOf, fieldsOf, messages } from "./Protobuf.ts"

/** A histogram with one set of attributes, as it is exported. */
export interface Histogram {
  readonly name: string
  readonly unit: string
  readonly bounds: ReadonlyArray<number>
  readonly count: number
  readonly attributes: Attributes
}

/** Reads the histograms of `MetricsData` of OpenTelemetry's protobuf, the latest ones last. */
export const readHistograms = (bytes: Buffer): ReadonlyArray<Histogram> =>
  messages(fieldsOf(bytes), 1).flatMap((resourceMetrics) =>
    messages(resourceMetrics, 2).flatMap((scopeMetrics) =>
      messages(scopeMetrics, 2).flatMap((metric) =>
        messages(metric, 9).flatMap((histogram) =>
          messages(histogram, 1).map((point) => ({
            name: bytesOf(metric, 1).toString(),
            unit: bytesOf(metric, 3).toString(),
            bounds: point.flatMap(({ bytes, number }) => (number === 7 ? [bytes.readDoubleLE()] : [])),
            count: Number(bytesOf(point, 4).readBigUInt64LE()),
            attributes: attributesOf(point, 9)
          }))
        )
      )
    )
  )
