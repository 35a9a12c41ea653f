interface Part {
  readonly text: string
  readonly isMark: boolean
}

/**
 * Matches a character that turns text around or takes no room: control characters other than line breaks and tabs, and
 * what Unicode calls ignorable, such as embeddings, overrides, zero-width spaces and tags. Joiners and variation
 * selectors are not matched, because words and emoji consist of them too.
 */
const marks =
  /((?![\n\r\t])\p{Cc}|[\u2028\u2029]|(?!\u200c|\u200d|\p{Variation_Selector})\p{Default_Ignorable_Code_Point})/u

/** After so many marks the others get no frame, because each frame is an element of the page. */
const mostFramed = 100

/** Splits a text into what is shown as it is, and into names such as `U+202E` of what would not be seen. */
export const marksOf = (text: string): ReadonlyArray<Part> => {
  // the pieces at odd places are the marks
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

/** Returns the text with the names of its marks, for places that take only a string, such as hints and the window title. */
export const shownText = (text: string): string =>
  marksOf(text)
    .map((part) => part.text)
    .join("")
