import { forEachLinePart } from "../../http/SseLines.ts"

/**
 * SDKs of both families treat a stream as complete after these lines, whatever happens to the connection. Event JSON
 * escapes line breaks, so model output never forms a line of its own.
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

/** Before any terminator; within the event of one; or after it, with only blank lines and comments since. */
type StreamPosition = "before" | "within" | "after"

/**
 * Returns a function that takes each chunk of an event stream and tells whether a client may treat the stream as
 * complete. A terminator counts only until another event follows.
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

/** Stands in for a line longer than any terminator: only its first character matters. */
const placeholderFor = (first: number | undefined): string => (first === colon ? longComment : longField)
const longComment = ":".repeat(maxTerminatorLength + 1)
const longField = "-".repeat(maxTerminatorLength + 1)
