import * as Headers from "../../http/Headers.ts"

/** Refuses a repeated content-type header, because some parsers use the first value and some the last. */
export const duplicateContentType = (headers: Headers.RawHeaders): string | undefined =>
  Headers.getAll(headers, "content-type").length > 1 ? "Several content-type headers were sent. Send one." : undefined

/**
 * Returns the error for a body that is compressed or not UTF-8. In another charset, the upstream could read a different
 * text than the gateway. For example, `+ACI-` is a quotation mark in UTF-7.
 */
export const unreadableEncoding = (headers: Headers.RawHeaders): string | undefined => {
  const encodings = Headers.getAll(headers, "content-encoding")
  if (encodings.some((encoding) => encoding.toLowerCase() !== "identity"))
    return "Send the body without content-encoding."
  const type = Headers.get(headers, "content-type") ?? ""
  // Nearly all requests take this fast path. The search below takes a microsecond.
  if (type === "application/json") return undefined
  return charsetsOf(type.toLowerCase()).some((given) => !supportedCharsets.has(given))
    ? "Send the body as UTF-8; other charsets are not supported."
    : undefined
}

/**
 * Returns every charset that any parser may find, including quoted ones and those in RFC 2231 form. Each search
 * continues after the last match, which keeps the time linear in the header's length.
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

/** An upstream with a lenient parser may accept a body that starts like JSON but is invalid. */
export const startsLikeJson = (bytes: Buffer): boolean => {
  const first = bytes.find((byte) => !ignoredBytes.has(byte))
  return first !== undefined && jsonOpenings.has(first)
}

/** White space, the bytes of byte order marks, and the zero bytes of UTF-16 and UTF-32 text. */
const ignoredBytes: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0x00, 0xef, 0xbb, 0xbf, 0xff, 0xfe])
const jsonOpenings: ReadonlySet<number> = new Set([0x7b, 0x5b])
