import type { Span } from "./OtlpSpans.ts"

const kinds = ["", "", "server", "client", "producer", "consumer"]

/** The attributes that a tree shows, in this order. */
const shown: ReadonlyArray<string> = [
  "http.response.status_code",
  "gateway.model",
  "gateway.fallback_reason",
  "gateway.guardrail.mode",
  "gateway.guardrail.action",
  "gateway.provider",
  "gen_ai.provider.name",
  "gen_ai.response.id",
  "gen_ai.response.finish_reasons",
  "gen_ai.usage.input_tokens",
  "gen_ai.usage.output_tokens",
  "messaging.destination.name",
  "svc.retry_attempt",
  "error.type"
]

/** The spans of a trace as they are nested, each with its attributes below its name. */
export const render = (spans: ReadonlyArray<Span>, rename: (text: string) => string): string => {
  const ids = new Set(spans.map(({ spanId }) => spanId))
  const inOrder = spans.toSorted((a, b) => Number(a.startedAt - b.startedAt))
  const childrenOf = (id: string) => inOrder.filter(({ parentSpanId }) => parentSpanId === id)
  const linesOf = (span: Span, first: string, indent: string): ReadonlyArray<string> => {
    const children = childrenOf(span.spanId)
    return [
      first + rename(nameOf(span, spans)),
      ...wrapped(attributesOf(span).map(rename)).map(
        (line) => `${indent}${children.length === 0 ? " " : "│"}    ${line}`
      ),
      ...children.flatMap((child, index) =>
        index === children.length - 1
          ? linesOf(child, `${indent}└─ `, `${indent}   `)
          : linesOf(child, `${indent}├─ `, `${indent}│  `)
      )
    ]
  }
  return inOrder
    .filter(({ parentSpanId }) => !ids.has(parentSpanId))
    .flatMap((root) => linesOf(root, "", ""))
    .join("\n")
}

const nameOf = ({ isError, kind, links, name }: Span, spans: ReadonlyArray<Span>): string =>
  [
    name,
    ...(kinds[kind] === "" ? [] : [`(${kinds[kind]})`]),
    ...(isError ? ["failed"] : []),
    ...links.map(
      ({ spanId }) => `links to ${spans.find((span) => span.spanId === spanId)?.name ?? "the publisher's span"}`
    )
  ].join(" ")

const attributesOf = ({ attributes }: Span): ReadonlyArray<string> =>
  shown.flatMap((name) => (name in attributes ? [`${name}=${attributes[name]}`] : []))

const width = 100

const wrapped = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of words) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length >= width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}
