import * as Headers from "../../http/Headers.ts"

/** Parsers differ on a duplicate content-type: some use the first, some the last. */
export const duplicateContentType = (headers: Headers.RawHeaders): string | undefined =>
  Headers.getAll(headers, "content-type").length > 1 ? "Send content-type once." : undefined

/**
 * The error for a body that the gateway cannot decode as UTF-8 JSON. An upstream that honours another charset reads a
 * different text: in UTF-7, `+ACI-` is a quotation mark.
 */
export const unreadableEncoding = (headers: Headers.RawHeaders): string | undefined => {
  const encodings = Headers.getAll(headers, "content-encoding")
  if (encodings.some((encoding) => encoding.toLowerCase() !== "identity"))
    return "Send the body without content-encoding."
  const type = Headers.get(headers, "content-type") ?? ""
  // Fast path of nearly all requests: the search takes a microsecond.
  if (type === "application/json") return undefined
  return charsetsOf(type.toLowerCase()).some((given) => !supportedCharsets.has(given))
    ? "Send the body as UTF-8; other charsets are not supported."
    : undefined
}

/**
 * Finds every charset that any parser may find, quoted or in RFC 2231 form. Each search continues after the last match,
 * because the client chooses the number of matches.
 */
const charsetsOf = (type: string): ReadonlyArray<string> => {
  const charsets: Array<string> = []
  for (const parameter of type.split(";")) {
    for (let offset = 0; ; offset = charsetValue.lastIndex) {
      const charset = parameter.indexOf("charset", offset)
      const equals = charset === -1 ? -1 : parameter.indexOf("=", charset)
      if (equals === -1) break
      charsetValue.lastIndex = equals + 1
      charsets.push(charsetValue.exec(parameter)?.[1] ?? "")
    }
  }
  return charsets
}

const charsetValue = /\s*"?([^\s";,]*)/y

const supportedCharsets: ReadonlySet<string> = new Set(["utf-8", "utf8", "us-ascii"])

export const isUrlEncoded = (headers: Headers.RawHeaders): boolean =>
  /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(Headers.get(headers, "content-type") ?? "")

/** Invalid JSON that starts like JSON may be valid for a more lenient parser. */
export const startsLikeJson = (bytes: Buffer): boolean => {
  const first = bytes.find((byte) => !ignoredBytes.has(byte))
  return first !== undefined && jsonOpenings.has(first)
}

/** White space, byte order marks and the zero bytes of UTF-16 and UTF-32. */
const ignoredBytes: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0x00, 0xef, 0xbb, 0xbf, 0xff, 0xfe])
const jsonOpenings: ReadonlySet<number> = new Set([0x7b, 0x5b])
