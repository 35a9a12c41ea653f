/** The code of a position before the first or after the last character of a text. */
export const edge = -1

export const tab = 0x09
/** Backslashes with `n`, `r`, `t`, `b` or `f` count as this one character. */
export const lineFeed = 0x0a
export const space = 0x20
export const percent = 0x25
export const openParenthesis = 0x28
export const closeParenthesis = 0x29
export const plus = 0x2b
export const hyphen = 0x2d
export const dot = 0x2e
export const slash = 0x2f
export const zero = 0x30
export const colon = 0x3a
export const equalsSign = 0x3d
export const at = 0x40
export const openBracket = 0x5b
export const closeBracket = 0x5d
export const underscore = 0x5f
/** All dashes except `-` have this code. They separate the groups of a number but do not join words. */
export const dash = 0x2010

const ignorable = -1

/** Returns the code that stands for a character when values are looked for; `undefined` if it does not count. */
export const normalCode = (codePoint: number): number | undefined => {
  if (codePoint < 0x80) return isControl(codePoint) ? undefined : codePoint
  if (codePoint > 0xffff) return computeNormalCode(codePoint)
  // 0 means that the code has not been computed yet
  const known = normalCodes[codePoint]
  if (known !== undefined && known !== 0) return known === ignorable ? undefined : known
  const code = computeNormalCode(codePoint)
  normalCodes[codePoint] = code ?? ignorable
  return code
}

/** True for characters of ASCII that nobody sees, unlike tabs and ends of lines. */
export const isControl = (code: number): boolean => code < 0x09 || (code > 0x0d && code < 0x20) || code === 0x7f

const normalCodes = new Int32Array(0x10000)

const computeNormalCode = (codePoint: number): number | undefined => {
  const isSurrogate = codePoint >= 0xd800 && codePoint <= 0xdfff
  if (isSurrogate) return codePoint
  if (codePoint >= 0xff01 && codePoint <= 0xff5e) return codePoint - 0xfee0
  const character = String.fromCodePoint(codePoint)
  if (invisible.test(character)) return undefined
  if (character === "\ufe6b") return at
  if (/^[\u2010-\u2015\u2212\ufe63]$/.test(character)) return dash
  if (/^\p{Zs}$/u.test(character)) return space
  return isDigitCharacter(codePoint) ? zero + digitValue(codePoint) : codePoint
}

/** The second part is control characters and marks of annotations. */
const invisible = /^(?:\p{Default_Ignorable_Code_Point}|[\x80-\x84\x86-\x9f\ufff9-\ufffb])$/u

const isDigitCharacter = (codePoint: number): boolean => /^\p{Nd}$/u.test(String.fromCodePoint(codePoint))

/** Unicode encodes the ten digits of a script in a row. The mathematical digits are five such rows. */
const digitValue = (codePoint: number): number => {
  if (codePoint >= 0x1d7ce && codePoint <= 0x1d7ff) return (codePoint - 0x1d7ce) % 10
  let value = 0
  while (value < 9 && isDigitCharacter(codePoint - value - 1)) value++
  return value
}

export const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39

export const isAsciiLetter = (code: number): boolean => {
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x7a
}

export const isUpper = (code: number): boolean => code >= 0x41 && code <= 0x5a

export const isAlphanumeric = (code: number): boolean => isDigit(code) || isAsciiLetter(code)

export const isHexDigit = (code: number): boolean => isDigit(code) || ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x66)

export const isBase64Url = (code: number): boolean => isAlphanumeric(code) || code === hyphen || code === underscore

export const isBase64 = (code: number): boolean =>
  isAlphanumeric(code) || code === plus || code === 0x2f || code === 0x3d

/** True for the letters of e-mail addresses: Latin, Greek and Cyrillic, with their accents. */
export const isLetter = (code: number): boolean => {
  if (code < 0x80) return isAsciiLetter(code)
  if (code > 0xffff) return false
  const known = letters[code]
  if (known !== undefined && known !== 0) return known === 2
  const is = /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Mn}]$/u.test(String.fromCharCode(code))
  letters[code] = is ? 2 : 1
  return is
}

const letters = new Uint8Array(0x10000)
