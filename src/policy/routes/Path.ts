import { Result } from "effect"

/** A request target that has one reading only. `path` is for decisions; what is forwarded is the target as it came. */
export interface CanonicalPath {
  /** Without query; percent-escapes of letters, digits, `-`, `_` and `~` decoded. */
  readonly path: string
  readonly segments: ReadonlyArray<string>
}

/** Of a path; a query is as long as the server lets a request's head be (16 KiB). */
const maxLength = 8192

/** Reasons are sentences about the path, for the caller's eyes. */
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

/** Letters, digits, `-`, `_` and `~` between single slashes: one test in the place of six, and nothing to decode. */
const plainPath = /^(?:\/[\w~-]+)+\/?$/

/**
 * Upstreams disagree about dot segments, empty segments and escapes; a path that two of them could read differently is
 * refused, so nothing is decided on one path and served from another.
 */
export const canonicalise = (target: string): Result.Result<CanonicalPath, string> => {
  if (!target.startsWith("/")) return Result.fail("does not begin with /")
  const question = target.indexOf("?")
  const raw = question === -1 ? target : target.slice(0, question)
  if (raw.length > maxLength) return Result.fail(`is longer than ${maxLength} characters`)
  if (plainPath.test(raw)) return Result.succeed(canonical(raw))
  const refusal = refusals.find(([pattern]) => pattern.test(raw))
  if (refusal !== undefined) return Result.fail(refusal[1])
  if (!isDecodable(raw)) return Result.fail("contains a percent-escape that is not UTF-8")
  // what is left encodes characters that no upstream treats as structure
  const path = raw.includes("%")
    ? raw.replace(/%([0-9a-f]{2})/gi, (escape, hex: string) => {
        const character = String.fromCharCode(Number.parseInt(hex, 16))
        return /[A-Za-z0-9\-_~]/.test(character) ? character : escape.toUpperCase()
      })
    : raw
  return Result.succeed(canonical(path))
}

/**
 * Paths as operators write them down: in the one form that canonical paths have, or with a `/*` for what lies below.
 */
export const isPattern = (text: string): boolean =>
  /^(?:\/[A-Za-z0-9_~.-]+)+(?:\/\*)?$/.test(text) && !/\/\.{1,2}(?:\/|$)/.test(text)

/** A trailing `*` of an allowed path stands for any rest: the test is of the text before it. */
export const matches = (pattern: string, path: string): boolean =>
  pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern

const canonical = (path: string): CanonicalPath => ({ path, segments: path.slice(1).split("/") })

/** Lenient decoders have read overlong forms such as `%c0%ae` as a dot. */
const isDecodable = (path: string): boolean =>
  !path.includes("%") || Result.isSuccess(Result.try(() => decodeURIComponent(path)))
