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

const lineFeed = 0x0a
const colon = 0x3a

/** Where a stream is: no last event has come, or it is in one, or behind one with nothing but blanks and comments. */
type Place = "before" | "within" | "behind"

/**
 * Follows an event stream, however it is cut: tells of each chunk whether the stream may be over with it for a client.
 * Where another event begins behind a last one, it was none.
 */
export const follow = (): ((chunk: Buffer) => boolean) => {
  /** The unfinished line, as far as it could be one of them. */
  let begun = ""
  let place: Place = "before"
  return (chunk) => {
    for (let from = 0; ; ) {
      const found = chunk.indexOf(lineFeed, from)
      const end = found === -1 ? chunk.length : found
      const line =
        begun.length + end - from > longest
          ? tooLong(begun === "" ? chunk[from] : begun.charCodeAt(0))
          : begun + chunk.toString("latin1", from, end)
      if (found === -1) {
        begun = line
        return place !== "before"
      }
      if (lastLines.has(line)) place = "within"
      else if (place !== "before") place = placeAfter(line, place)
      begun = ""
      from = end + 1
    }
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
