import { Result } from "effect"

/** An unambiguous request path, used for decisions. The gateway forwards the target as it was received. */
export interface CanonicalPath {
  /** Without query. Escapes of letters, digits, `-`, `_` and `~` are decoded. */
  readonly path: string
  readonly segments: ReadonlyArray<string>
}

/** Limits the path. The query is limited by the size of a request's head (16 KiB). */
const maxLength = 8192

/** Each reason completes the sentence "The request path …". */
const refusals: ReadonlyArray<readonly [RegExp, string]> = [
  [/[^\x21-\x7e]/, "contains a character that must be percent-encoded"],
  [/[\\#;]/, "contains a backslash, # or ;"],
  [/\/\//, "contains an empty segment (//)"],
  [/%(?![0-9a-f]{2})/i, "contains a broken percent-escape"],
  [
    /%(?:2e|2f|5c|23|3b|3f|25|0[0-9a-f]|1[0-9a-f]|7f)/i,
    "contains an encoded dot, slash, backslash, percent, delimiter or control character"
  ],
  [/\/\.{1,2}(?:\/|$)/, "contains a dot segment"]
]

/** Nearly all paths match this pattern. They are already canonical and need no further check. */
const plainPath = /^(?:\/[\w~-]+)+\/?$/

/** Refuses paths that an upstream could read differently, because the gateway's decisions depend on the path. */
export const canonicalise = (target: string): Result.Result<CanonicalPath, string> => {
  if (!target.startsWith("/")) return Result.fail("does not begin with /")
  const question = target.indexOf("?")
  const raw = question === -1 ? target : target.slice(0, question)
  if (raw.length > maxLength) return Result.fail(`is longer than ${maxLength} characters`)
  if (plainPath.test(raw)) return Result.succeed(canonical(raw))
  const refusal = refusals.find(([pattern]) => pattern.test(raw))
  if (refusal !== undefined) return Result.fail(refusal[1])
  if (!isDecodable(raw)) return Result.fail("contains a percent-escape that is not UTF-8")
  // The remaining escapes stand for characters that no upstream treats as structure.
  const path = raw.includes("%")
    ? raw.replace(/%([0-9a-f]{2})/gi, (escape, hex: string) => {
        const character = String.fromCharCode(Number.parseInt(hex, 16))
        return /[A-Za-z0-9\-_~]/.test(character) ? character : escape.toUpperCase()
      })
    : raw
  return Result.succeed(canonical(path))
}

export const isPattern = (text: string): boolean =>
  /^(?:\/[A-Za-z0-9_~.-]+)+(?:\/\*)?$/.test(text) && !/\/\.{1,2}(?:\/|$)/.test(text)

export const matches = (pattern: string, path: string): boolean =>
  pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern

const canonical = (path: string): CanonicalPath => ({ path, segments: path.slice(1).split("/") })

/** Refuses invalid UTF-8, because lenient decoders read some of it as a dot, such as `%c0%ae`. */
const isDecodable = (path: string): boolean =>
  !path.includes("%") || Result.isSuccess(Result.try(() => decodeURIComponent(path)))
