import { forEachLinePart } from "../../http/SseLines.ts"

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
  ].flatMap(([field, value]) => [`${field}:${value}`, `${field}: ${value}`].flatMap((line) => [line, `${line}\r`]))
)
const maxTerminatorLength = Math.max(...[...terminatorLines].map((line) => line.length))

const colon = 0x3a

/** `within`: in the event of a terminator line. `after`: only blank lines and comments have followed that event. */
type StreamPosition = "before" | "within" | "after"

/**
 * Returns a function that takes each chunk of an event stream and tells whether the client may treat the stream as
 * complete. Another event after a terminator makes the stream incomplete again.
 */
export const makeDetector = (): ((chunk: Buffer) => boolean) => {
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
    forEachLinePart(chunk, onPart)
    return position !== "before"
  }
}

const positionAfter = (line: string, place: StreamPosition): StreamPosition => {
  if (line === "" || line === "\r") return "after"
  return place === "within" || line.charCodeAt(0) === colon ? place : "before"
}

/** A line longer than any terminator is replaced by a text of the same kind: a comment or a field. */
const placeholderFor = (first: number | undefined): string => (first === colon ? longComment : longField)
const longComment = ":".repeat(maxTerminatorLength + 1)
const longField = "-".repeat(maxTerminatorLength + 1)
