import * as JsonStrings from "./JsonStrings.ts"

/** The original values by placeholder. They are kept in memory until the request ends. */
export type PlaceholderValues = ReadonlyMap<string, string>

interface Redaction {
  readonly text: string
  readonly found: PlaceholderValues
  readonly counts: { readonly email_count: number; readonly phone_count: number; readonly ssn_count: number }
}

export interface Options {
  /** The placeholders that the request already uses. A new value gets another one. */
  readonly known: PlaceholderValues
  readonly restore: boolean
}

type Kind = "EMAIL" | "SSN" | "PHONE"

interface Detector {
  readonly kind: Kind
  /** Matches runs of characters that may contain the value. */
  readonly candidates: RegExp
  readonly matches: (trimmed: string) => boolean
  /** True if the match must not be part of a longer word. Such a word is an id or encoded bytes. */
  readonly isNumber: boolean
}

/** Invisible characters can hide an e-mail address from the pattern, so they are removed before matching. */
const invisible = /[\u00ad\u200b-\u200d\u2060\ufeff]/g

/** Detectors run in this order. Each one searches the text that earlier detectors have already changed. */
const detectors: ReadonlyArray<Detector> = [
  {
    kind: "EMAIL",
    candidates:
      /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}0-9@\uff20\ufe6b._%+\-\u00ad\u200b-\u200d\u2060\ufeff]+/gu,
    matches: (text) => isEmail(text.replace(invisible, "").replace(/[\uff20\ufe6b]/g, "@")),
    isNumber: false
  },
  { kind: "SSN", candidates: /[0-9-]+/g, matches: (text) => /^\d{3}-\d{2}-\d{4}$/.test(text), isNumber: true },
  // A number with spaces is a phone number only if it has a country code with + or an area code in parentheses.
  {
    kind: "PHONE",
    candidates:
      /\+\d{1,3}[ \u00a0.-]?(?:\(\d{1,4}\)|\d{1,4})(?:[ \u00a0.-]\d{2,4}){1,4}|\(\d{3}\)[ \u00a0]\d{3}[ \u00a0.-]\d{4}/g,
    matches: (text) => isPhone(text),
    isNumber: true
  },
  { kind: "PHONE", candidates: /[0-9+\-().]+/g, matches: (text) => isPhone(text), isNumber: true }
]

/**
 * Replaces e-mail addresses, social security numbers and phone numbers in the string values of a JSON text.
 * Placeholders are numbered from 1 for each kind, without the numbers that the text or the request already uses. New
 * values are replaced before `known` placeholders are restored, so restored values stay readable. With `restore`,
 * values that the request contained are not replaced.
 */
export const redact = (text: string, { known, restore }: Options): Redaction => {
  const usedPlaceholders = new Set(known.keys())
  for (const value of JsonStrings.values(text)) {
    if (value.length < minLength) continue
    for (const placeholder of value.match(placeholders) ?? []) usedPlaceholders.add(placeholder)
  }
  const requestValues = new Set(restore ? known.values() : [])
  const found = new Map<string, string>()
  const lastNumber = { EMAIL: 0, SSN: 0, PHONE: 0 }
  const counts = { EMAIL: 0, SSN: 0, PHONE: 0 }

  const placeholderFor = (kind: Kind, value: string): string => {
    if (requestValues.has(value)) return value
    counts[kind]++
    let placeholder: string
    do placeholder = `[${kind}_${++lastNumber[kind]}]`
    while (usedPlaceholders.has(placeholder))
    found.set(placeholder, value)
    return placeholder
  }
  const redactValue = (value: string, key: string | undefined): string => {
    if (value.length < minLength || isEncoded(value, key)) return value
    let out = value
    for (const { isNumber, kind, matches, candidates } of detectors) {
      if (kind === "PHONE" && isId(key)) continue
      out = out.replace(candidates, (run, offset: number, fullText: string) => {
        const [start, end] = trimBounds(run, kind)
        const match = run.slice(start, end)
        return matches(match) && !(isNumber && isPartOfWord(fullText, offset + start, offset + end))
          ? run.slice(0, start) + placeholderFor(kind, match) + run.slice(end)
          : run
      })
    }
    return restore ? restorePlaceholders(out, known) : out
  }

  return {
    text: JsonStrings.map(text, redactValue),
    found,
    counts: { email_count: counts.EMAIL, phone_count: counts.PHONE, ssn_count: counts.SSN }
  }
}

const minLength = 5

/** Returns true for images, files and signatures in encoded form. A placeholder would corrupt them. */
const isEncoded = (value: string, key: string | undefined): boolean =>
  value.startsWith("data:")
    ? /^data:(?:[\w.+-]{1,64}\/[\w.+-]{1,64})?(?:;charset=[\w-]{1,32})?;base64,[A-Za-z0-9+/=_-]*$/.test(value)
    : key !== undefined && encodedMembers.has(key) && /^[A-Za-z0-9+/=_-]*$/.test(value)

const encodedMembers: ReadonlySet<string> = new Set(["signature", "encrypted_content", "b64_json", "file_data"])

/** An id may be a long number, so it is not searched for phone numbers. */
const isId = (key: string | undefined): boolean => key !== undefined && (key === "id" || key.endsWith("_id"))

/** A number next to a letter, a digit, `_`, `/` or `=` is part of a hexadecimal id, a UUID, base64 or a path. */
const isPartOfWord = (text: string, start: number, end: number): boolean => {
  if (start > 0 && /[A-Za-z0-9_/]/.test(text.charAt(start - 1))) return true
  if (end === text.length || !/[A-Za-z0-9_/=]/.test(text.charAt(end))) return false
  extension.lastIndex = end
  return !extension.test(text)
}

/** A phone number's extension, as in 555-123-4567x89. */
const extension = /x\d{1,5}(?![A-Za-z0-9_])/iy

/** Keeps placeholders inside URLs, because opening such a link would send the restored value to a foreign server. */
const restorePlaceholders = (text: string, known: PlaceholderValues): string =>
  text.replace(segments, (segment) => {
    const linkOffset = segment.search(linkStart)
    return segment.replace(placeholders, (placeholder, offset: number) =>
      linkOffset !== -1 && offset > linkOffset ? placeholder : (known.get(placeholder) ?? placeholder)
    )
  })

/** A tag or a quotation is one segment, because a URL inside it may contain spaces. */
const segments = /<[^<>]*>|"[^"]*"|[^\s"<>]+/g
const linkStart = /(?:https?|ftp|wss?|file):|[/\\]{2}|\bwww\./i

const placeholders = /\[(?:EMAIL|SSN|PHONE)_[1-9]\d*\]/g

const punctuation = ",.;:()[]{}\"'"

/** Excludes the punctuation around a match. An `@` may precede an e-mail address, as in a mention. */
const trimBounds = (run: string, kind: Kind): readonly [start: number, end: number] => {
  const leading = kind === "EMAIL" ? `${punctuation}@` : punctuation
  let start = 0
  let end = run.length
  while (start < end && leading.includes(run.charAt(start))) start++
  while (end > start && punctuation.includes(run.charAt(end - 1))) end--
  return [start, end]
}

const isEmail = (text: string): boolean => {
  const index = text.indexOf("@")
  const domain = text.slice(index + 1)
  return index > 0 && domain.includes(".") && !domain.startsWith(".") && !domain.endsWith(".")
}

const isPhone = (text: string): boolean => {
  let digits = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code >= 0x30 && code <= 0x39) digits++
  }
  return digits >= 10 && digits <= 15
}
