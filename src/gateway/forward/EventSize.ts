const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * Follows an event stream, however it is cut: tells whether an event, up to the blank line that ends it, has become
 * longer than `most` bytes.
 */
export const follow = (most: number): ((chunk: Buffer) => boolean) => {
  /** Bytes of the event, and of its unfinished line. */
  let event = 0
  let line = 0
  let last = 0
  return (chunk) => {
    for (let from = 0; from < chunk.length; ) {
      const found = chunk.indexOf(lineFeed, from)
      const end = found === -1 ? chunk.length : found
      event += end - from
      line += end - from
      if (end > from) last = chunk[end - 1]!
      const blank = line === 0 || (line === 1 && last === carriageReturn)
      // what may be the blank line does not count
      if (event > most && !blank) return true
      if (found === -1) return false
      event = blank ? 0 : event + 1
      line = 0
      from = end + 1
    }
    return false
  }
}
