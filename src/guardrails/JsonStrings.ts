import { closeBrace, closeBracket, comma, openBrace, openBracket, quote, stringEnd } from "../gateway/model/JsonScan.ts"

/** A string value of a JSON text, by its place: from its opening quote to just behind the closing one. */
interface Place {
  readonly start: number
  readonly end: number
}

/** What is inside braces or brackets; outside of both there is one without end. */
interface Container {
  readonly isObject: boolean
  readonly values: Array<{ readonly key: string; readonly value: Place | Container }>
  /** The member whose value is next. */
  key: string | undefined
}

/**
 * `text` with each string value that `change` answers differently in its place. Every other byte stays as it was:
 * numbers keep their digits, keys their order. `text` must be JSON. Values are shown in the order of their objects'
 * keys, items as they stand; keys are not shown. Nothing here recurses: a client's body may nest deeper than the call
 * stack.
 */
export const mapped = (text: string, change: (value: string) => string): string => {
  const changes: Array<Place & { readonly json: string }> = []
  for (const { end, start } of places(text)) {
    const value = valueAt(text, start, end)
    const changed = change(value)
    if (changed !== value) changes.push({ start, end, json: JSON.stringify(changed) })
  }
  if (changes.length === 0) return text
  changes.sort((a, b) => a.start - b.start)
  const parts: Array<string> = []
  let from = 0
  for (const { end, json, start } of changes) {
    parts.push(text.slice(from, start), json)
    from = end
  }
  parts.push(text.slice(from))
  return parts.join("")
}

/** The string values of `text`, in the order in which `mapped` shows them. */
export const values = (text: string): ReadonlyArray<string> =>
  places(text).map(({ end, start }) => valueAt(text, start, end))

const valueAt = (text: string, start: number, end: number): string => {
  const plain = text.slice(start + 1, end - 1)
  return plain.includes("\\") ? JSON.parse(text.slice(start, end)) : plain
}

const places = (text: string): ReadonlyArray<Place> => {
  const found: Array<Place> = []
  const pending: Array<Place | Container> = [read(text)]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (!("values" in next)) {
      found.push(next)
      continue
    }
    const { isObject, values } = next
    if (isObject) values.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    for (let index = values.length - 1; index >= 0; index--) {
      const entry = values[index]
      if (entry !== undefined) pending.push(entry.value)
    }
  }
  return found
}

const read = (text: string): Container => {
  const root: Container = { isObject: false, values: [], key: undefined }
  const open: Array<Container> = []
  let inside = root
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote: {
        const end = stringEnd(text, at)
        if (inside.isObject && inside.key === undefined) inside.key = valueAt(text, at, end)
        else inside.values.push({ key: inside.key ?? "", value: { start: at, end } })
        at = end - 1
        break
      }
      case openBrace:
      case openBracket: {
        const opened: Container = { isObject: text.charCodeAt(at) === openBrace, values: [], key: undefined }
        inside.values.push({ key: inside.key ?? "", value: opened })
        open.push(inside)
        inside = opened
        break
      }
      case closeBrace:
      case closeBracket:
        inside = open.pop() ?? root
        break
      case comma:
        inside.key = undefined
    }
  }
  return root
}
