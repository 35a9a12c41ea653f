export const quote = 0x22
export const comma = 0x2c
export const colon = 0x3a
export const openBrace = 0x7b
export const closeBrace = 0x7d
export const openBracket = 0x5b
export const closeBracket = 0x5d
export const backslash = 0x5c

/** Returns the index after the closing quote. `indexOf` is faster than a loop for long strings. */
export const stringEnd = (text: string, from: number): number => {
  let end = text.indexOf('"', from + 1)
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end + 1
}

const isEscaped = (text: string, end: number): boolean => {
  let at = end - 1
  while (text.charCodeAt(at) === backslash) at--
  return (end - at) % 2 === 0
}
