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
  return head(level.toUpperCase(), sentences.join(": "), role)(at) + members + end
}

/** The members that every line begins with, by its time: lines of one message have the rest in common. */
export const head = (level: string, message: string, role: string): ((at: number) => string) => {
  const rest = `","level":"${level}","message":${JSON.stringify(message.slice(0, longest))},"role":"${role}"`
  return (at) => `{"timestamp":"${timestamp(at)}${rest}`
}

export const end = "}\n"

let lastSecond = Number.NaN
let lastText = ""

/** As `Date.toISOString`, of which only the milliseconds are made anew while lines are of the same second. */
const timestamp = (at: number): string => {
  const second = Math.floor(at / 1000)
  if (second !== lastSecond) {
    lastSecond = second
    lastText = new Date(second * 1000).toISOString().slice(0, -"000Z".length)
  }
  const ms = at - second * 1000
  return `${lastText}${ms < 10 ? "00" : ms < 100 ? "0" : ""}${ms}Z`
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
