import * as JsonStrings from "./JsonStrings.ts"

/** What the placeholders of a request stand for. It lives as long as the request, and nowhere else. */
export type Memory = ReadonlyMap<string, string>

export interface Redaction {
  readonly text: string
  /** The new placeholders, and what they stand for. */
  readonly found: Memory
  readonly counts: { readonly email_count: number; readonly phone_count: number; readonly ssn_count: number }
}

export interface Options {
  /** Placeholders that the request brought: no new one takes their place. */
  readonly known: Memory
  /** Known placeholders become what they stand for again. */
  readonly restores: boolean
}

type Kind = "EMAIL" | "SSN" | "PHONE"

interface Pass {
  readonly kind: Kind
  /** Characters that are legal in it, as long as they go on. */
  readonly runs: RegExp
  readonly matches: (trimmed: string) => boolean
}

/** Reference §7.4, in its order. */
const passes: ReadonlyArray<Pass> = [
  { kind: "EMAIL", runs: /[A-Za-z0-9@._%+-]+/g, matches: (text) => isEmail(text) },
  { kind: "SSN", runs: /[0-9-]+/g, matches: (text) => /^\d{3}-\d{2}-\d{4}$/.test(text) },
  { kind: "PHONE", runs: /[0-9+\-().]+/g, matches: (text) => isPhone(text) }
]

/**
 * Replaces what looks like an e-mail address, a social security number or a phone number in the string values of a JSON
 * text. Each occurrence gets a number of its own, from 1 for each kind; numbers that the text or the request already
 * use are left out, or a placeholder would come to stand for two things. New findings are replaced before known
 * placeholders are restored, so that what is restored is seen.
 */
export const redact = (text: string, { known, restores }: Options): Redaction => {
  const taken = new Set(known.keys())
  for (const value of JsonStrings.values(text)) {
    for (const placeholder of value.match(placeholders) ?? []) taken.add(placeholder)
  }
  const found = new Map<string, string>()
  const last = { EMAIL: 0, SSN: 0, PHONE: 0 }
  const counts = { EMAIL: 0, SSN: 0, PHONE: 0 }

  const replaced = (kind: Kind, value: string): string => {
    counts[kind]++
    let placeholder: string
    do placeholder = `[${kind}_${++last[kind]}]`
    while (taken.has(placeholder))
    found.set(placeholder, value)
    return placeholder
  }
  const scanned = (value: string): string => {
    let out = value
    for (const { kind, matches, runs } of passes) {
      out = out.replace(runs, (run) => {
        const [start, end] = trimmed(run)
        const inner = run.slice(start, end)
        return matches(inner) ? run.slice(0, start) + replaced(kind, inner) + run.slice(end) : run
      })
    }
    return restores ? out.replace(placeholders, (placeholder) => known.get(placeholder) ?? placeholder) : out
  }

  return {
    text: JsonStrings.mapped(text, scanned),
    found,
    counts: { email_count: counts.EMAIL, phone_count: counts.PHONE, ssn_count: counts.SSN }
  }
}

const placeholders = /\[(?:EMAIL|SSN|PHONE)_[1-9]\d*\]/g

const punctuation = ",.;:()[]{}\"'"

/** Where a run begins and ends without the punctuation around it. */
const trimmed = (run: string): readonly [start: number, end: number] => {
  let start = 0
  let end = run.length
  while (start < end && punctuation.includes(run.charAt(start))) start++
  while (end > start && punctuation.includes(run.charAt(end - 1))) end--
  return [start, end]
}

const isEmail = (text: string): boolean => {
  const at = text.indexOf("@")
  const domain = text.slice(at + 1)
  return at > 0 && domain.includes(".") && !domain.startsWith(".") && !domain.endsWith(".")
}

const isPhone = (text: string): boolean => {
  let digits = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code >= 0x30 && code <= 0x39) digits++
  }
  return digits >= 10 && digits <= 15
}
