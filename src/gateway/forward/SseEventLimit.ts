import { LineScanner } from "../../http/SseLines.ts"

/** Returns a function for the chunks of a stream. It returns true once an event has exceeded `maxBytes`. */
export const makeDetector = (maxBytes: number): ((chunk: Buffer) => boolean) => {
  const lines = new LineScanner()
  let lineBytes = 0
  let eventBytes = 0
  let isExceeded = false
  const onPart = (_: Buffer, from: number, end: number, isEnd: boolean) => {
    lineBytes += end - from
    eventBytes += end - from
    if (eventBytes > maxBytes && lineBytes > 0) isExceeded = true
    if (!isEnd) return
    // A blank line ends the event. The end of another line counts as one byte.
    eventBytes = lineBytes === 0 ? 0 : eventBytes + 1
    lineBytes = 0
  }
  return (chunk) => {
    lines.scan(chunk, onPart)
    return isExceeded
  }
}
