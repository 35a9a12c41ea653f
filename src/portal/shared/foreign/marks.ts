interface Part {
  readonly text: string
  readonly isMark: boolean
}

/**
 * What turns text around (embeddings, overrides, isolates), and what takes no room at all: control characters but those
 * of lines and tabs, the zero-width space and the byte order mark. Joiners belong to words and emoji.
 */
const marks = /((?![\n\r\t])\p{Cc}|[\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff])/u

/** More marks than a text has by accident are named without their frames. */
const mostFramed = 100

/** Splits a text into what is shown as it is, and into names such as `U+202E` of what would not be seen. */
export const marksOf = (text: string): ReadonlyArray<Part> => {
  // the odd pieces are what the pieces were split at
  const pieces = text.split(marks)
  const framed = pieces.slice(0, 2 * mostFramed)
  const rest = pieces.slice(2 * mostFramed)
  const parts = framed.map((piece, n) =>
    n % 2 === 1 ? { text: nameOf(piece), isMark: true } : { text: piece, isMark: false }
  )
  const after = rest.map((piece, n) => (n % 2 === 1 ? nameOf(piece) : piece)).join("")
  return [...parts, { text: after, isMark: false }].filter((part) => part.text !== "")
}

const nameOf = (character: string) => `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`
