import { forEachLinePart, LineLength } from "../../http/SseLines.ts"

/** Tells of each chunk of an event stream whether an event, up to its blank line, has become longer than `most` bytes. */
export const makeDetector = (most: number): ((chunk: Buffer) => boolean) => {
  const line = new LineLength()
  let event = 0
  let isExceeded = false
  const onPart = (bytes: Buffer, from: number, end: number, isEnd: boolean) => {
    event += end - from
    line.add(bytes, from, end)
    // the blank line itself does not count
    if (event > most && !line.isBlank) isExceeded = true
    if (!isEnd) return
    event = line.isBlank ? 0 : event + 1
    line.reset()
  }
  return (chunk) => {
    forEachLinePart(chunk, onPart)
    return isExceeded
  }
}
