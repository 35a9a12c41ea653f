import { valueAt } from "./JsonTape.ts"

interface LiteralSpan {
  /** The offsets of the whole literal with its quotes. */
  readonly start: number
  readonly end: number
}

/** Returns the value of the string literal at `span` of a JSON text. */
export const literalAt = (json: string, { end, start }: LiteralSpan): string => valueAt(json, start, end)

/** Replaces string literals of a JSON text and keeps all other characters. `changes` need not be in order. */
export const withLiterals = (
  json: string,
  changes: ReadonlyArray<LiteralSpan & { readonly value: string }>
): string => {
  const parts: Array<string> = []
  let from = 0
  for (const { end, start, value } of [...changes].sort((a, b) => a.start - b.start)) {
    parts.push(json.slice(from, start), JSON.stringify(value))
    from = end
  }
  parts.push(json.slice(from))
  return parts.join("")
}
