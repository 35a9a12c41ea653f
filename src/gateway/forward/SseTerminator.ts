import { eachPart } from "../../http/SseLines.ts"

/**
 * After these lines the clients of both families take a stream for whole, whatever the connection does. Line breaks in
 * an event's JSON are escaped, so what a model says is never a line.
 */
const lastLines: ReadonlySet<string> = new Set(
  [
    ["data", "[DONE]"],
    ["event", "message_stop"],
    ["event", "response.completed"],
    ["event", "response.incomplete"],
    ["event", "response.failed"]
  ].flatMap(([field, value]) => [`${field}:${value}`, `${field}: ${value}`].flatMap((line) => [line, `${line}\r`]))
)
const longest = Math.max(...[...lastLines].map((line) => line.length))

const colon = 0x3a

/** No terminator has come, the stream is in the event of one, or behind one with nothing but blank lines and comments. */
type Place = "before" | "within" | "behind"

/**
 * Tells of each chunk of an event stream whether a client may take the stream for whole after it. Where another event
 * begins behind a terminator, it was none.
 */
export const follow = (): ((chunk: Buffer) => boolean) => {
  /** The unfinished line, as far as it could be a terminator. */
  let begun = ""
  let place: Place = "before"
  const onPart = (bytes: Buffer, from: number, end: number, isEnd: boolean) => {
    const line =
      begun.length + end - from > longest
        ? tooLong(begun === "" ? bytes[from] : begun.charCodeAt(0))
        : begun + bytes.toString("latin1", from, end)
    begun = isEnd ? "" : line
    if (!isEnd) return
    if (lastLines.has(line)) place = "within"
    else if (place !== "before") place = placeAfter(line, place)
  }
  return (chunk) => {
    eachPart(chunk, onPart)
    return place !== "before"
  }
}

const placeAfter = (line: string, place: Place): Place => {
  if (line === "" || line === "\r") return "behind"
  return place === "within" || line.charCodeAt(0) === colon ? place : "before"
}

/** Stands for a line that is longer than any of them: what it begins with is all that matters. */
const tooLong = (first: number | undefined): string => (first === colon ? longComment : longField)
const longComment = ":".repeat(longest + 1)
const longField = "-".repeat(longest + 1)
