import type { Writing } from "../../../src/guardrails/detect/Scanner.ts"

/** A list of numbers waits for no longer until it is known to be JSON. */
const maxList = 256
/** The most characters of an e-mail address before its `@`. */
const maxLocalPart = 256

/**
 * Returns true if the end of a text may still become a value or a placeholder. It may be one word of letters and digits, a
 * number with its spaces, or the beginning of a placeholder, and the beginning of an escape may follow. The
 * function shares no code with the scanner that holds texts.
 */
export const mayWait = (held: string, text: string, writing: Writing, isUsual: boolean): boolean => {
  if (held.length <= 1 || (asciiWord.test(held) && held.length <= maxLocalPart)) return true
  const plain = decoded(held, writing)
  const isCandidate = isUsual ? isUsualCandidate : isNumberCandidate
  if (isCandidate(plain)) return true
  return startsAsJson.test(text) && isAfterNumbers(plain, isCandidate)
}

const isUsualCandidate = (text: string): boolean =>
  (word.test(text) && (text.includes("@") || text.length <= maxLocalPart + 1)) ||
  phone.test(text) ||
  placeholder.test(text)

/** Payment cards, account numbers and addresses of computers have spaces after groups with a digit. */
const isNumberCandidate = (text: string): boolean => isUsualCandidate(text) || groups.test(text)

const asciiWord = /^[\w.@+-]*$/
const word = /^[\p{L}\p{M}\p{N}\p{Pd}._%+@−]*$/u
/** What follows a number tells whether it is a part of an id. */
const phone = /^[\d+(][\d\p{Zs}\t\p{Pd}()./+−]{0,64}[\p{L}\p{M}\p{N}\p{Pd}_/%=.:+@]{0,64}$/u
const placeholder = /^\[[A-Z]*(?:_\d{0,9})?$/
const groups =
  /^(?:[\p{L}\p{Pd}.:+−]*\d[\p{L}\p{N}\p{Pd}.:+−]*[\p{Zs}\t]{1,3}(?:[\p{Pd}.+−](?:[\p{Zs}\t]|$))?|[A-Za-z]{4}[\p{Zs}\t]{1,3}){0,17}[\p{L}\p{M}\p{N}\p{Pd}._%+@:−]*$/u
const startsAsJson = /^\s*(?:`{3}(?:json)?\s+)?[[{]/i

const isAfterNumbers = (text: string, isCandidate: (text: string) => boolean): boolean => {
  const [numbers = ""] = /^[-\d.eE+,\s[\]}\\]*/.exec(text) ?? []
  for (let at = Math.min(numbers.length, maxList); at > 0; at--) if (isCandidate(text.slice(at))) return true
  return false
}

const decoded = (text: string, writing: Writing): string =>
  (writing === "json"
    ? text
        .replaceAll('\\"', "\n")
        .replaceAll("\\/", "/")
        .replaceAll(/(?<!\\)((?:\\\\)*)\\t/g, "$1\t")
    : text
  )
    .replaceAll(/\\+[bfnrt]/g, "\n")
    .replaceAll(/\\+u([0-9a-f]{4})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/(?:[\ud800-\udbff]|\\[\\u0-9a-f]*|&[#a-z0-9]{0,40}|%[0-9a-f]?)+$/i, "")
    .replaceAll(/%(09|2[089bde]|40)/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/&#(?:x([0-9a-f]+)(?:;|(?=[^\da-f]))|(\d+)(?:;|(?=\D)))/gi, (_, hex, decimal) =>
      character(hex, decimal)
    )
    .replaceAll(/&(\w+);/g, (entity, name: string) => entities[name.toLowerCase()] ?? entity)
    .normalize("NFKC")
    .replaceAll(/\p{Nd}/gu, "0")
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Cs}\ufff9-\ufffb]|(?![\t-\r\x85])\p{Cc}/gu, "")

const entities: Readonly<Record<string, string>> = { commat: "@", nbsp: " ", shy: "", ndash: "-", period: "." }

const character = (hex: string | undefined, decimal: string | undefined): string => {
  const value = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
  return value <= 0x10ffff ? String.fromCodePoint(value) : "&"
}
