import { Result } from "effect"
import { memberOf } from "../../policy/facts/MemberName.ts"
import * as UrlEncoded from "../../policy/facts/UrlEncoded.ts"

interface ParsedForm {
  readonly fields: ReadonlyMap<string, string>
  readonly files: number
  readonly textBytes: number
}

/**
 * Parses a form body and returns the `wanted` fields. Refuses a form that two parsers could read differently, because
 * the upstream must read the same values as the gateway. The failure is a message for the client.
 */
export const read = (
  contentType: string,
  body: Buffer,
  wanted: ReadonlySet<string>
): Result.Result<ParsedForm, string> => {
  const type = parseParameters(contentType)
  switch (type?.value.toLowerCase()) {
    case "application/x-www-form-urlencoded":
      return collectFields(parseUrlEncoded(body), wanted)
    case "multipart/form-data": {
      const boundary = singleParameter(type?.parameters ?? [], "boundary")
      return boundary === undefined || boundary.length > maxBoundary
        ? Result.fail(`The content-type of the form must name one boundary of up to ${maxBoundary} characters.`)
        : collectFields(parseMultipart(body, boundary), wanted)
    }
    default:
      return Result.fail(
        "The content-type of the form must be multipart/form-data or application/x-www-form-urlencoded."
      )
  }
}

interface Field {
  readonly name: string
  readonly isFile: boolean
  readonly bytes: number
  /** `undefined` for a file, for text that is not UTF-8, and for a value that is too long. */
  readonly text: string | undefined
}

const maxValueBytes = 16_384

/** The longest boundary that RFC 2046 allows. */
const maxBoundary = 70

/** The usual limit of web servers. It bounds the work before the gateway knows whether the request is allowed. */
const maxFields = 1000
const tooManyFields = `The form has more than ${maxFields} fields, which is the limit. Send fewer fields.`

const maxHeadBytes = 8192
const headersTooLong = `The headers of a form part are larger than ${maxHeadBytes} bytes, which is the limit. Send shorter headers.`

const collectFields = (
  form: Result.Result<ReadonlyArray<Field>, string>,
  wanted: ReadonlySet<string>
): Result.Result<ParsedForm, string> => {
  if (Result.isFailure(form)) return Result.fail(form.failure)
  const byMember = new Map(Array.from(wanted, (name) => [memberOf(name), name]))
  const fields = new Map<string, string>()
  let [files, textBytes] = [0, 0]
  for (const { bytes, isFile, name, text } of form.success) {
    if (isFile) files++
    else textBytes += bytes
    const plain = byMember.get(memberOf(name))
    if (plain === undefined) continue
    if (name !== plain) return Result.fail(`The form must have ${plain} as a plain field.`)
    if (fields.has(name)) return Result.fail(`The form has the field ${name} twice. Send it once.`)
    if (text === undefined) {
      return Result.fail(`The field ${name} of the form must be UTF-8 text of up to ${maxValueBytes} bytes.`)
    }
    fields.set(name, text)
  }
  return Result.succeed({ fields, files, textBytes })
}

const parseUrlEncoded = (body: Buffer): Result.Result<ReadonlyArray<Field>, string> => {
  const found: Array<Field> = []
  for (const { name, value } of UrlEncoded.pairs(body.toString("latin1"))) {
    if (found.length === maxFields) return Result.fail(tooManyFields)
    const text = decodePlainText(value)
    found.push({ name: UrlEncoded.decoded(name), isFile: false, bytes: UrlEncoded.decodedBytes(value), text })
  }
  return Result.succeed(found)
}

/** Refuses bytes that are neither ASCII nor escaped, because some parsers read them as Latin-1 and some as UTF-8. */
const decodePlainText = (value: string): string | undefined => {
  if (UrlEncoded.decodedBytes(value) > maxValueBytes || notAscii.test(value)) return undefined
  const text = UrlEncoded.decoded(value)
  return text.includes("\ufffd") ? undefined : text
}

const notAscii = /[\x80-\xff]/

const missingBoundary = "The form is incomplete: its closing boundary is missing."
const crlf = "\r\n"
const headSeparator = `${crlf}${crlf}`

const parseMultipart = (body: Buffer, boundary: string): Result.Result<ReadonlyArray<Field>, string> => {
  const dashed = Buffer.from(`--${boundary}`)
  const found: Array<Field> = []
  if (!body.subarray(0, dashed.length).equals(dashed)) return Result.fail("The form must begin with its boundary.")
  for (let from = dashed.length; ; ) {
    const next = body.toString("latin1", from, from + 2)
    if (next === "--") {
      const rest = body.toString("latin1", from + 2)
      return rest === "" || rest === crlf
        ? Result.succeed(found)
        : Result.fail("The form has data after its closing boundary.")
    }
    const end = body.indexOf(dashed, from)
    if (end === -1) return Result.fail(missingBoundary)
    if (next !== crlf || body.toString("latin1", end - 2, end) !== crlf) {
      return Result.fail("Each boundary of the form must be on its own line, which ends with CR LF.")
    }
    if (found.length === maxFields) return Result.fail(tooManyFields)
    const part = body.subarray(from + 2, end - 2)
    const headEnd = part.subarray(0, maxHeadBytes + headSeparator.length).indexOf(headSeparator)
    if (headEnd === -1 && part.length > maxHeadBytes) return Result.fail(headersTooLong)
    const field = headEnd === -1 ? undefined : parseField(part, headEnd)
    if (field === undefined) {
      return Result.fail("A part of the form has unsupported headers: send one content-disposition with one name.")
    }
    found.push(field)
    from = end + dashed.length
  }
}

const parseField = (part: Buffer, headEnd: number): Field | undefined => {
  const headers: Array<Header> = []
  for (const line of part.toString("utf8", 0, headEnd).split(crlf)) {
    const header = parseHeader(line)
    if (header === undefined) return undefined
    headers.push(header)
  }
  const all = (name: string) => headers.flatMap((header) => (header.name === name ? [header.value] : []))
  const [text = "", ...others] = all("content-disposition")
  const content = part.subarray(headEnd + headSeparator.length)
  const [, ofFile] = others.length === 0 ? (fileDisposition.exec(text) ?? []) : []
  if (ofFile !== undefined) return { name: ofFile, isFile: true, bytes: content.length, text: undefined }
  const disposition = parseParameters(text)
  if (others.length > 0 || disposition?.value.toLowerCase() !== "form-data") return undefined
  if (disposition.parameters.some(([name]) => !knownParameters.has(name))) return undefined
  if (all("content-transfer-encoding").some((encoding) => !/^(?:7bit|8bit|binary)$/i.test(encoding))) return undefined
  const name = singleParameter(disposition.parameters, "name")
  if (name === undefined || name.includes("\\")) return undefined
  const isFile = disposition.parameters.length > 1
  const isText = !isFile && !all("content-type").some((type) => otherCharset.test(type))
  return { name, isFile, bytes: content.length, text: isText ? decodeUtf8(content) : undefined }
}

/** Matches a file part without decoding the file name, because clients escape quotation marks differently. */
const fileDisposition = /^form-data;[ \t]*name="([^"\\]+)";[ \t]*filename="[^;=]*"$/i

interface Header {
  readonly name: string
  readonly value: string
}

const parseHeader = (line: string): Header | undefined => {
  const colon = line.indexOf(":")
  const name = line.slice(0, Math.max(0, colon))
  return headerNamePattern.test(name) && !/[\r\n]/.test(line)
    ? { name: name.toLowerCase(), value: trimBlanks(line, colon + 1) }
    : undefined
}

const headerNamePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** Removes only spaces and tabs at the ends, whereas `trim` removes every Unicode space. */
const trimBlanks = (line: string, from: number): string => {
  let start = from
  let end = line.length
  while (isBlank(line, start)) start++
  while (end > start && isBlank(line, end - 1)) end--
  return line.slice(start, end)
}

const isBlank = (line: string, at: number): boolean => line.charAt(at) === " " || line.charAt(at) === "\t"

const knownParameters: ReadonlySet<string> = new Set(["name", "filename", "filename*"])
const otherCharset = /charset(?!\s*=\s*"?(?:utf-?8|us-ascii)\b)/i

type Parameters = ReadonlyArray<readonly [name: string, value: string]>

/** Parses a header value with parameters (RFC 9110). Returns `undefined` for any other syntax. */
const parseParameters = (text: string): { readonly value: string; readonly parameters: Parameters } | undefined => {
  const [value] = /^[^\s;"]+/.exec(text) ?? []
  if (value === undefined) return undefined
  const parameters: Array<readonly [string, string]> = []
  for (let at = value.length; at < text.length; at = parameterPattern.lastIndex) {
    parameterPattern.lastIndex = at
    const [, name = "", quoted, plain = ""] = parameterPattern.exec(text) ?? []
    if (name === "") return undefined
    parameters.push([name.toLowerCase(), quoted ?? plain])
  }
  return { value, parameters }
}

const parameterPattern = /[ \t]*;[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\[^"])*)"|([^\s;"\\,]+))[ \t]*/y

const singleParameter = (parameters: Parameters, name: string): string | undefined => {
  const [value, ...others] = parameters.flatMap(([one, value]) => (one === name ? [value] : []))
  return others.length === 0 && value !== "" ? value : undefined
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const decodeUtf8 = (bytes: Buffer): string | undefined => {
  if (bytes.length > maxValueBytes) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}
