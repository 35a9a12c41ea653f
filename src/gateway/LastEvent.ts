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

/** Follows an event stream, however it is cut: tells in which chunk such a line comes to its end. */
export const follow = (): ((chunk: Buffer) => boolean) => {
  /** The unfinished line, as far as it could be one of them. */
  let begun = ""
  return (chunk) => {
    for (let from = 0; ; ) {
      const end = chunk.indexOf(lineFeed, from)
      const length = begun.length + (end === -1 ? chunk.length : end) - from
      const line = length > longest ? tooLong : begun + chunk.toString("latin1", from, end === -1 ? chunk.length : end)
      if (end === -1) {
        begun = line
        return false
      }
      if (lastLines.has(line)) return true
      begun = ""
      from = end + 1
    }
  }
}

const tooLong = "-".repeat(longest + 1)
