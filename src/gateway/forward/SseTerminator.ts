import { LineScanner } from "../../http/SseLines.ts"

/**
 * OpenAI and Anthropic SDKs treat a stream as complete after one of these lines, even if the connection then fails. The
 * model's text cannot form such a line, because JSON escapes line breaks.
 */
const terminatorLines: ReadonlySet<string> = new Set(
  [
    ["data", "[DONE]"],
    ["event", "message_stop"],
    ["event", "response.completed"],
    ["event", "response.incomplete"],
    ["event", "response.failed"]
  ].flatMap(([field, value]) => [`${field}:${value}`, `${field}: ${value}`])
)
const maxTerminatorLength = Math.max(...[...terminatorLines].map((line) => line.length))

const colon = 0x3a

/** `within`: inside an event with a terminator line. `after`: only blank lines or comments followed that event. */
type StreamPosition = "before" | "within" | "after"

/**
 * Returns a function for the chunks of an event stream. It returns true if the client may consider the stream complete.
 * Another event after a terminator makes the stream incomplete again.
 */
export const makeDetector = (): ((chunk: Buffer) => boolean) => {
  const lines = new LineScanner()
  let partialLine = ""
  let position: StreamPosition = "before"
  const onPart = (bytes: Buffer, from: number, end: number, isEnd: boolean) => {
    const line =
      partialLine.length + end - from > maxTerminatorLength
        ? placeholderFor(partialLine === "" ? bytes[from] : partialLine.charCodeAt(0))
        : partialLine + bytes.toString("latin1", from, end)
    partialLine = isEnd ? "" : line
    if (!isEnd) return
    if (terminatorLines.has(line)) position = "within"
    else if (position !== "before") position = positionAfter(line, position)
  }
  return (chunk) => {
    lines.scan(chunk, onPart)
    return position !== "before"
  }
}

const positionAfter = (line: string, place: StreamPosition): StreamPosition => {
  if (line === "") return "after"
  return place === "within" || line.charCodeAt(0) === colon ? place : "before"
}

/** Replaces a line that is longer than any terminator. Only the line's kind matters: comment or field. */
const placeholderFor = (first: number | undefined): string => (first === colon ? longComment : longField)
const longComment = ":".repeat(maxTerminatorLength + 1)
const longField = "-".repeat(maxTerminatorLength + 1)
