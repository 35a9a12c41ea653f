import { forEachLinePart, LineLength } from "../../http/SseLines.ts"

/** Returns a function for the chunks of a stream. It returns true once an event has exceeded `maxBytes`. */
export const makeDetector = (maxBytes: number): ((chunk: Buffer) => boolean) => {
  const line = new LineLength()
  let eventBytes = 0
  let isExceeded = false
  const onPart = (bytes: Buffer, from: number, end: number, isEnd: boolean) => {
    eventBytes += end - from
    line.add(bytes, from, end)
    if (eventBytes > maxBytes && !line.isBlank) isExceeded = true
    if (!isEnd) return
    eventBytes = line.isBlank ? 0 : eventBytes + 1
    line.reset()
  }
  return (chunk) => {
    forEachLinePart(chunk, onPart)
    return isExceeded
  }
}
