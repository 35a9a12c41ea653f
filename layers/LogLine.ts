import { Cause, Formatter, LogLevel, Predicate } from "effect"

/** One line of the log. A field without a value is left out, so that stores of logs see one type for each name. */
export interface LogLine {
  /** Epoch milliseconds. */
  readonly at: number
  readonly level: LogLevel.LogLevel
  readonly role: string
  /** What the program logs: sentences and errors make the message, the members of objects are fields. */
  readonly said: ReadonlyArray<unknown>
  readonly cause: Cause.Cause<unknown>
  readonly annotations: Readonly<Record<string, unknown>>
  readonly trace: { readonly traceId: string; readonly spanId: string } | undefined
}

/** A string of this many characters says enough. */
const longest = 8_192

const reserved: ReadonlySet<string> = new Set(["timestamp", "level", "message", "role"])

export const text = (line: LogLine): string => {
  const { annotations, at, cause, level, role, said, trace } = line
  const sentences: Array<string> = []
  const fields = new Map<string, string>()
  const withStack = LogLevel.isGreaterThanOrEqualTo(level, "Error")
  const put = (name: string, value: unknown) => {
    const written = valueText(value, withStack)
    if (written !== undefined) fields.set(reserved.has(name) ? `${name}_` : name, written)
  }
  for (const [name, value] of Object.entries(annotations)) put(name, value)
  for (const part of said) {
    if (Cause.isCause(part)) put("cause", part)
    else if (part instanceof Error) put("error", part)
    else if (isPlain(part)) for (const [name, value] of Object.entries(part)) put(name, value)
    else if (part !== undefined && part !== null) {
      sentences.push(typeof part === "string" ? part : Formatter.format(part))
    }
  }
  if (cause.reasons.length > 0) put("cause", cause)
  if (trace !== undefined) {
    put("trace_id", trace.traceId)
    put("span_id", trace.spanId)
  }
  const members = [...fields].map(([name, value]) => `,${JSON.stringify(name)}:${value}`).join("")
  return head(at, level.toUpperCase(), sentences.join(": "), role) + members + end
}

/** The members that every line begins with. */
export const head = (at: number, level: string, message: string, role: string): string =>
  `{"timestamp":"${timestamp(at)}","level":"${level}","message":${JSON.stringify(message.slice(0, longest))},"role":"${role}"`

export const end = "}\n"

let lastAt = Number.NaN
let lastText = ""

/** Under load many lines are of the same millisecond. */
const timestamp = (at: number): string => {
  if (at !== lastAt) {
    lastAt = at
    lastText = new Date(at).toISOString()
  }
  return lastText
}

/** A value as JSON; `undefined` where it says nothing. */
const valueText = (value: unknown, withStack: boolean): string | undefined => {
  if (value === undefined || value === null || value === "") return undefined
  if (typeof value === "number" || typeof value === "boolean") return JSON.stringify(value)
  if (Cause.isCause(value)) {
    return quoted(withStack ? Cause.pretty(value) : Cause.prettyErrors(value).map(describe).join("; "))
  }
  if (value instanceof Error) return quoted(withStack ? (value.stack ?? describe(value)) : describe(value))
  if (typeof value === "string") return quoted(value)
  if (!isCollection(value)) return quoted(Formatter.format(value))
  return Object.keys(value).length === 0 ? undefined : bounded(Formatter.formatJson(value))
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, longest))

/** A JSON text that is too long is a string of its beginning. */
const bounded = (json: string): string => (json.length > longest ? quoted(json) : json)

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> => {
  if (!Predicate.isObject(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const isCollection = (value: unknown): value is object => Array.isArray(value) || isPlain(value)

/** An error and what caused it, without the places in the program. */
const describe = (error: Error): string => {
  const own = error.message === "" ? error.name : `${error.name}: ${error.message}`
  return error.cause instanceof Error ? `${own} (${describe(error.cause)})` : own
}
