const spaces = "nbsp ensp emsp thinsp"
const dashes = "hyphen dash ndash mdash minus"
const invisible = "shy zwj zwnj zerowidthspace nobreak"

/** The entities of HTML that may stand in a value, in lower case. */
const named: ReadonlyMap<string, number> = new Map([
  ...spaces.split(" ").map((name) => [name, 0x20] as const),
  ...dashes.split(" ").map((name) => [name, 0x2010] as const),
  ...invisible.split(" ").map((name) => [name, 0xad] as const),
  ["tab", 0x09],
  ["commat", 0x40],
  ["period", 0x2e],
  ["plus", 0x2b],
  ["lpar", 0x28],
  ["rpar", 0x29],
  ["lowbar", 0x5f]
])

const beginnings: ReadonlySet<string> = new Set(
  [...named.keys()].flatMap((name) => Array.from({ length: name.length }, (_, end) => name.slice(0, end + 1)))
)

/** Longer numbers do not count. */
export const maxEntity = 34

/** Returns true if this, after an `&`, is an entity or the beginning of one. */
export const isBeginningOfEntity = (text: string): boolean =>
  number.test(text) || beginnings.has((text.endsWith(";") ? text.slice(0, -1) : text).toLowerCase())

/** Returns the character for an entity without its `&`. A number may lack the `;`, as browsers read it. */
export const codePointOfEntity = (text: string): number | undefined => {
  if (!text.startsWith("#")) return text.endsWith(";") ? named.get(text.slice(0, -1).toLowerCase()) : undefined
  const digits = text.replaceAll(/[#;]/g, "").replace(/^x/i, "0x")
  const value = digits === "" || digits === "0x" ? Number.NaN : Number(digits)
  return value <= 0x10ffff ? value : undefined
}

const number = /^#(?:\d{0,32}|x[\da-f]{0,32}|\d{1,32};|x[\da-f]{1,32};)$/i

/** Returns the character for the two digits after a `%`, if it may stand in a value. */
export const codePointOfPercentEscape = (digits: string): number | undefined => percentEscapes.get(digits.toLowerCase())

const percentEscapes: ReadonlyMap<string, number> = new Map(
  ["09", "20", "28", "29", "2b", "2d", "2e", "40"].map((digits) => [digits, Number.parseInt(digits, 16)])
)
