/** Gets the bytes from `from` to `end` of a line. `isEnd`: the line feed follows; else the chunk ends within the line. */
export type OnLinePart = (bytes: Buffer, from: number, end: number, isEnd: boolean) => void

const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Cuts a chunk of an event stream into lines, and into parts of lines where it begins or ends within one. */
export const forEachLinePart = (chunk: Buffer, onPart: OnLinePart): void => {
  let from = 0
  for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, from)) {
    onPart(chunk, from, end, true)
    from = end + 1
  }
  if (from < chunk.length) onPart(chunk, from, chunk.length, false)
}

/** The length of the line that is being read, however its stream is cut. */
export class LineLength {
  #length = 0
  #last = 0

  /** A line without bytes ends an event, and so does a lone carriage return. */
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
