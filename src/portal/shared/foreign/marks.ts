interface Part {
  readonly text: string
  readonly isMark: boolean
}

/**
 * What turns text around and what takes no room: control characters but those of lines and tabs, and what Unicode calls
 * ignorable, such as embeddings, overrides, zero-width spaces and tags. Joiners and variations belong to words and emoji.
 */
const marks =
  /((?![\n\r\t])\p{Cc}|[\u2028\u2029]|(?!\u200c|\u200d|\p{Variation_Selector})\p{Default_Ignorable_Code_Point})/u

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

/** The same for places that take nothing but a string, such as hints and titles of windows. */
export const shownText = (text: string): string =>
  marksOf(text)
    .map((part) => part.text)
    .join("")
