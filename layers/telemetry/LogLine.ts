import { Cause, Formatter, LogLevel, Predicate } from "effect"

/** The process that writes a line. `worker` is its number if several processes of the role share a listener. */
export interface Source {
  readonly role: string
  readonly worker?: number
}

/** Empty fields are left out of the JSON, so that a field has the same type in every line. */
interface LogLine {
  readonly at: number
  readonly level: LogLevel.LogLevel
  readonly source: Source
  /**
   * Texts form the message. Members of plain objects become fields. An error becomes the field `error`, and the message
   * where there is no text, as in the log lines of Effect about failed HTTP requests.
   */
  readonly parts: ReadonlyArray<unknown>
  readonly cause: Cause.Cause<unknown>
  readonly annotations: Readonly<Record<string, unknown>>
  readonly trace: { readonly traceId: string; readonly spanId: string } | undefined
}

const maxLength = 8_192

const reservedNames: ReadonlySet<string> = new Set(["timestamp", "level", "message", "role"])

export const format = (line: LogLine): string => {
  const { annotations, at, cause, level, parts, source, trace } = line
  const sentences: Array<string> = []
  const failures: Array<string> = []
  const fields = new Map<string, string>()
  const withStack = LogLevel.isGreaterThanOrEqualTo(level, "Error")
  const setField = (name: string, value: unknown) => {
    const written = valueText(value, withStack)
    if (written === undefined) return
    const isTaken = reservedNames.has(name) || (name === "worker" && source.worker !== undefined)
    fields.set(isTaken ? `${name}_` : name, written)
  }
  for (const [name, value] of Object.entries(annotations)) setField(name, value)
  for (const part of parts) {
    if (Cause.isCause(part)) {
      failures.push(describeCause(part))
      setField("cause", part)
    } else if (part instanceof Error) {
      failures.push(describeError(part))
      setField("error", part)
    } else if (isPlain(part)) for (const [name, value] of Object.entries(part)) setField(name, value)
    else if (part !== undefined && part !== null) {
      sentences.push(typeof part === "string" ? part : Formatter.format(part))
    }
  }
  if (cause.reasons.length > 0) {
    failures.push(describeCause(cause))
    setField("cause", cause)
  }
  if (trace !== undefined) {
    setField("trace_id", trace.traceId)
    setField("span_id", trace.spanId)
  }
  const members = [...fields].map(([name, value]) => `,${JSON.stringify(name)}:${value}`).join("")
  const message = sentences.join(": ") || failures.find((text) => text !== "") || "no message"
  return linePrefix(level.toUpperCase(), message, source)(at) + members + lineEnd
}

/** Formats the beginning of a line. The part without the time is formatted only once per message. */
export const linePrefix = (level: string, message: string, { role, worker }: Source): ((at: number) => string) => {
  const text = JSON.stringify(message.slice(0, maxLength))
  const rest = `","level":"${level}","message":${text},"role":"${role}"${worker === undefined ? "" : `,"worker":${worker}`}`
  return (at) => `{"timestamp":"${timestamp(at)}${rest}`
}

export const lineEnd = "}\n"

let lastSecond = Number.NaN
let lastText = ""

/** Returns the same text as `Date.toISOString`, but formats only the milliseconds if the second is unchanged. */
const timestamp = (at: number): string => {
  const second = Math.floor(at / 1000)
  if (second !== lastSecond) {
    lastSecond = second
    lastText = new Date(second * 1000).toISOString().slice(0, -"000Z".length)
  }
  const ms = at - second * 1000
  return `${lastText}${ms < 10 ? "00" : ms < 100 ? "0" : ""}${ms}Z`
}

const valueText = (value: unknown, withStack: boolean): string | undefined => {
  if (value === undefined || value === null || value === "") return undefined
  if (typeof value === "number" || typeof value === "boolean") return JSON.stringify(value)
  if (Cause.isCause(value)) {
    return quoted(withStack ? Cause.pretty(value) : describeCause(value))
  }
  if (value instanceof Error) return quoted(withStack ? (value.stack ?? describeError(value)) : describeError(value))
  if (typeof value === "string") return quoted(value)
  if (!isCollection(value)) return quoted(Formatter.format(value))
  return Object.keys(value).length === 0 ? undefined : truncated(Formatter.formatJson(value))
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, maxLength))

const truncated = (json: string): string => (json.length > maxLength ? quoted(json) : json)

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> => {
  if (!Predicate.isObject(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const isCollection = (value: unknown): value is object => Array.isArray(value) || isPlain(value)

const describeCause = (cause: Cause.Cause<unknown>): string => Cause.prettyErrors(cause).map(describeError).join("; ")

const describeError = (error: Error): string => {
  const own = error.message === "" ? error.name : `${error.name}: ${error.message}`
  return error.cause instanceof Error ? `${own} (${describeError(error.cause)})` : own
}
