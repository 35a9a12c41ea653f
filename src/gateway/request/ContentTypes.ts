import * as Headers from "../../http/Headers.ts"

/** `content-type` stands there twice: of two readers one takes the first, the other the last. */
export const duplicateContentType = (headers: Headers.RawHeaders): string | undefined =>
  Headers.getAll(headers, "content-type").length > 1 ? "Send content-type once." : undefined

/**
 * Why nobody here can read the body as JSON, whatever it holds. An upstream that heeds a charset reads another text
 * than the gateway does: under UTF-7 `+ACI-` is a quotation mark.
 */
export const unreadableEncoding = (headers: Headers.RawHeaders): string | undefined => {
  const encodings = Headers.getAll(headers, "content-encoding")
  if (encodings.some((encoding) => encoding.toLowerCase() !== "identity"))
    return "Send the body without content-encoding."
  const type = Headers.get(headers, "content-type") ?? ""
  // as nearly every request has it: the search takes a microsecond
  if (type === "application/json") return undefined
  return charsetsOf(type.toLowerCase()).some((given) => !supportedCharsets.has(given))
    ? "Send the body as UTF-8, and no other charset."
    : undefined
}

/**
 * In every place where some reader finds one: parameters may be quoted, and written as RFC 2231 has it. Each search
 * begins where the last one ended, because the client chooses how often the word stands there.
 */
const charsetsOf = (type: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (const parameter of type.split(";")) {
    for (let at = 0; ; at = charsetValue.lastIndex) {
      const word = parameter.indexOf("charset", at)
      const equals = word === -1 ? -1 : parameter.indexOf("=", word)
      if (equals === -1) break
      charsetValue.lastIndex = equals + 1
      found.push(charsetValue.exec(parameter)?.[1] ?? "")
    }
  }
  return found
}

const charsetValue = /\s*"?([^\s";,]*)/y

const supportedCharsets: ReadonlySet<string> = new Set(["utf-8", "utf8", "us-ascii"])

/** A form of the kind that holds no files. */
export const isUrlEncoded = (headers: Headers.RawHeaders): boolean =>
  /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(Headers.get(headers, "content-type") ?? "")

/** A text that begins as JSON and is none could be JSON to a reader that forgives more. */
export const startsLikeJson = (bytes: Buffer): boolean => {
  const first = bytes.find((byte) => !ignoredBytes.has(byte))
  return first !== undefined && jsonOpenings.has(first)
}

/** Spaces, and what byte order marks and the wider encodings put beside the first character. */
const ignoredBytes: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0x00, 0xef, 0xbb, 0xbf, 0xff, 0xfe])
const jsonOpenings: ReadonlySet<number> = new Set([0x7b, 0x5b])
