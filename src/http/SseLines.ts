/**
 * Receives bytes `from` to `end` of one line. `isEnd` is false if the line continues in the next chunk. Otherwise the
 * next line starts at `next`.
 */
type OnLinePart = (bytes: Buffer, from: number, end: number, isEnd: boolean, next: number) => void

export const lineFeed = 0x0a
export const carriageReturn = 0x0d

/**
 * Splits the chunks of an event stream into lines. A line ends with LF, CR LF or CR. A byte order mark before the first
 * line belongs to no line.
 */
export class LineScanner {
  #markLength = 0
  #isStart = true
  /** The last chunk ended with CR. A line feed that follows belongs to the same line end. */
  #isAfterReturn = false

  scan(chunk: Buffer, onPart: OnLinePart): void {
    if (chunk.length === 0) return
    let from = this.#isStart ? this.#skipMark(chunk, onPart) : 0
    if (this.#isAfterReturn && chunk[0] === lineFeed) from = 1
    this.#isAfterReturn = chunk[chunk.length - 1] === carriageReturn
    const carriageReturnAt = chunk.indexOf(carriageReturn, from)
    if (carriageReturnAt !== -1) from = scanMixed(chunk, from, carriageReturnAt, onPart)
    else {
      for (let end = chunk.indexOf(lineFeed, from); end !== -1; end = chunk.indexOf(lineFeed, from)) {
        onPart(chunk, from, end, true, end + 1)
        from = end + 1
      }
    }
    if (from < chunk.length) onPart(chunk, from, chunk.length, false, chunk.length)
  }

  /** Returns the number of bytes of the chunk that belong to the mark. The mark may be split between chunks. */
  #skipMark(chunk: Buffer, onPart: OnLinePart): number {
    const before = this.#markLength
    let at = 0
    while (at < chunk.length && before + at < byteOrderMark.length && chunk[at] === byteOrderMark[before + at]) at++
    this.#markLength = before + at
    this.#isStart = at === chunk.length && this.#markLength < byteOrderMark.length
    if (this.#isStart || this.#markLength === byteOrderMark.length) return at
    // The bytes only began like a mark.
    if (before > 0) onPart(byteOrderMark, 0, before, false, before)
    return 0
  }
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/** Scans a chunk that contains CR. Returns where its last, incomplete line starts. */
const scanMixed = (chunk: Buffer, start: number, firstReturn: number, onPart: OnLinePart): number => {
  let from = start
  let returnAt = firstReturn
  let feedAt = chunk.indexOf(lineFeed, from)
  for (;;) {
    if (returnAt !== -1 && returnAt < from) returnAt = chunk.indexOf(carriageReturn, from)
    if (feedAt !== -1 && feedAt < from) feedAt = chunk.indexOf(lineFeed, from)
    const isReturn = returnAt !== -1 && (feedAt === -1 || returnAt < feedAt)
    const end = isReturn ? returnAt : feedAt
    if (end === -1) return from
    const next = isReturn && chunk[end + 1] === lineFeed ? end + 2 : end + 1
    onPart(chunk, from, end, true, next)
    from = next
  }
}

/** Returns true if the bytes end with a blank line, which ends an event. */
export const endsWithBlankLine = (bytes: Buffer): boolean => {
  const lastLineEnd = lineEndStart(bytes, bytes.length)
  return lastLineEnd !== undefined && lineEndStart(bytes, lastLineEnd) !== undefined
}

/** Returns where the line end starts that ends before `end`. */
const lineEndStart = (bytes: Buffer, end: number): number | undefined => {
  if (bytes[end - 1] === carriageReturn) return end - 1
  if (bytes[end - 1] !== lineFeed) return undefined
  return bytes[end - 2] === carriageReturn ? end - 2 : end - 1
}
