import { forEachLinePart } from "../../http/SseLines.ts"

/**
 * After these lines the clients of both families take a stream for whole, whatever the connection does. Line breaks in
 * an event's JSON are escaped, so what a model says is never a line.
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

/** No terminator has come, the stream is in the event of one, or behind one with nothing but blank lines and comments. */
type StreamPosition = "before" | "within" | "behind"

/**
 * Tells of each chunk of an event stream whether a client may take the stream for whole after it. Where another event
 * begins behind a terminator, it was none.
 */
export const makeDetector = (): ((chunk: Buffer) => boolean) => {
  /** The unfinished line, as far as it could be a terminator. */
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
  if (line === "" || line === "\r") return "behind"
  return place === "within" || line.charCodeAt(0) === colon ? place : "before"
}

/** Stands for a line that is longer than any of them: what it begins with is all that matters. */
const placeholderFor = (first: number | undefined): string => (first === colon ? longComment : longField)
const longComment = ":".repeat(maxTerminatorLength + 1)
const longField = "-".repeat(maxTerminatorLength + 1)
