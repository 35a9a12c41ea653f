import type { Binding, Exchange, Field, Fields } from "../../src/services/Broker.ts"
import { refuse } from "./queues/ChannelException.ts"
import { fieldsEqual, typeOf } from "./queues/Fields.ts"

/** Dots separate words. `*` matches one word, `#` any number of words. */
const topicMatches = (pattern: string, key: string): boolean =>
  wordsMatch(pattern.split("."), key === "" ? [] : key.split("."))

const wordsMatch = (pattern: ReadonlyArray<string>, words: ReadonlyArray<string>): boolean => {
  let reached = new Set([0])
  for (const part of pattern) {
    const next = new Set<number>()
    for (const position of reached) {
      if (part === "#") for (let to = position; to <= words.length; to++) next.add(to)
      else if (position < words.length && (part === "*" || part === words[position])) next.add(position + 1)
    }
    reached = next
  }
  return reached.has(words.length)
}

const matchKinds = ["all", "any", "all-with-x", "any-with-x"]

export const checkHeadersBinding = (binding: Fields): void => {
  const kind = binding["x-match"]
  if (kind === undefined) return
  if (typeof kind !== "string") {
    refuse(406, `Invalid x-match field type ${typeOf(kind)} (value ${String(kind)}); expected longstr`)
  } else if (!matchKinds.includes(kind)) {
    refuse(406, `Invalid x-match field value <<"${kind}">>; expected all, any, all-with-x, or any-with-x`)
  }
}

const headersMatch = (wanted: Fields, headers: Fields): boolean => {
  const kind = wanted["x-match"] ?? "all"
  const compared = Object.entries(wanted).filter(
    ([name]) => name !== "x-match" && (String(kind).endsWith("-with-x") || !name.startsWith("x-"))
  )
  // If the binding has no value for a header, the message only needs to have the header.
  const holds = ([name, value]: readonly [string, Field]) => {
    const header = headers[name]
    return header !== undefined && (value === null || fieldsEqual(value, header))
  }
  return String(kind).startsWith("any") ? compared.some(holds) : compared.every(holds)
}

export const matches = (
  kind: Exchange["kind"],
  { routingKey, arguments: wanted }: Binding,
  keys: ReadonlyArray<string>,
  headers: Fields
): boolean => {
  switch (kind) {
    case "fanout":
      return true
    case "direct":
      return keys.includes(routingKey)
    case "topic":
      return keys.some((key) => topicMatches(routingKey, key))
    case "headers":
      return headersMatch(wanted ?? {}, headers)
  }
}
