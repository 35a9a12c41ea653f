import { type Attributes, attributesOf, bytesOf, fieldsOf, messages, numberOf } from "./Protobuf.ts"

/** A span as it is exported. Ids are in hex, and empty where there is none. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  /** 1: internal, 2: server, 3: client, 4: producer, 5: consumer. */
  readonly kind: number
  readonly startedAt: bigint
  readonly attributes: Attributes
  /** The ids of the spans that it links to. */
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
  readonly isError: boolean
}

export interface Exported {
  readonly resource: Span["attributes"]
  readonly spans: ReadonlyArray<Span>
}

/** Reads `TracesData` of OpenTelemetry's protobuf, as far as tests ask about it. */
export const read = (bytes: Buffer): ReadonlyArray<Exported> =>
  messages(fieldsOf(bytes), 1).map((resourceSpans) => ({
    resource: attributesOf(messages(resourceSpans, 1)[0] ?? [], 1),
    spans: messages(resourceSpans, 2).flatMap((scopeSpans) =>
      messages(scopeSpans, 2).map((span) => ({
        traceId: bytesOf(span, 1).toString("hex"),
        spanId: bytesOf(span, 2).toString("hex"),
        parentSpanId: bytesOf(span, 4).toString("hex"),
        name: bytesOf(span, 5).toString(),
        kind: Number(numberOf(span, 6)),
        startedAt: bytesOf(span, 7).readBigUInt64LE(),
        attributes: attributesOf(span, 9),
        links: messages(span, 13).map((link) => ({
          traceId: bytesOf(link, 1).toString("hex"),
          spanId: bytesOf(link, 2).toString("hex")
        })),
        isError: messages(span, 15).some((status) => numberOf(status, 3) === 2n)
      }))
    )
  }))
