/** Receives bytes `from` to `end` of one line. `isEnd` is false if the line continues in the next chunk. */
type OnLinePart = (bytes: Buffer, from: number, end: number, isEnd: boolean) => void

const lineFeed = 0x0a
const carriageReturn = 0x0d

export const forEachLinePart = (chunk: Buffer, onPart: OnLinePart): void => {
  let from = 0
  for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, from)) {
    onPart(chunk, from, end, true)
    from = end + 1
  }
  if (from < chunk.length) onPart(chunk, from, chunk.length, false)
}

export class LineLength {
  #length = 0
  #last = 0

  /** A blank line ends an event. With CR LF line endings, a blank line contains one carriage return. */
  get isBlank(): boolean {
    return this.#length === 0 || (this.#length === 1 && this.#last === carriageReturn)
  }

  add(bytes: Buffer, from: number, end: number): void {
    this.#length += end - from
    if (end > from) this.#last = bytes[end - 1]!
  }

  reset(): void {
    this.#length = 0
  }
}
