import { Result } from "effect"
import { memberOf } from "./model/MemberName.ts"

export interface Form {
  /** Those that were wanted, as text. */
  readonly fields: ReadonlyMap<string, string>
  readonly files: number
  /** Of all that are no files. */
  readonly textBytes: number
}

/**
 * A form in `multipart/form-data` or `application/x-www-form-urlencoded`, with the fields that are called as `wanted`
 * says. Readers of forms forgive different things, so a form that two of them could read differently is refused, in words
 * for its client: what decides here has to be what the upstream reads.
 */
export const read = (contentType: string, body: Buffer, wanted: ReadonlySet<string>): Result.Result<Form, string> => {
  const type = withParameters(contentType)
  switch (type?.value.toLowerCase()) {
    case "application/x-www-form-urlencoded":
      return collected(Result.succeed(urlencoded(body)), wanted)
    case "multipart/form-data": {
      const boundary = only(type?.parameters ?? [], "boundary")
      return boundary === undefined
        ? Result.fail("The content-type of the form must name one boundary.")
        : collected(parts(body, boundary), wanted)
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
  /** None: a file, no UTF-8, or too long. */
  readonly text: string | undefined
}

/** What is longer can be equal to no rule's text. */
const maxValueBytes = 16_384

const collected = (
  form: Result.Result<ReadonlyArray<Field>, string>,
  wanted: ReadonlySet<string>
): Result.Result<Form, string> => {
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
    if (fields.has(name)) return Result.fail(`The form has the field ${name} twice.`)
    if (text === undefined) {
      return Result.fail(`The field ${name} of the form must be UTF-8 text of up to ${maxValueBytes} bytes.`)
    }
    fields.set(name, text)
  }
  return Result.succeed({ fields, files, textBytes })
}

/** Some readers end a field at `;` too, which no client leaves unescaped. */
const urlencoded = (body: Buffer): ReadonlyArray<Field> =>
  Array.from(new URLSearchParams(body.toString("latin1").replaceAll(";", "&")), ([name, value]) => ({
    name,
    isFile: false,
    bytes: Buffer.byteLength(value),
    text: value.includes("\ufffd") || value.length > maxValueBytes ? undefined : value
  }))

const unended = "The form has no end: a boundary is missing."
const crlf = "\r\n"

const parts = (body: Buffer, boundary: string): Result.Result<ReadonlyArray<Field>, string> => {
  const dashed = Buffer.from(`--${boundary}`)
  const found: Array<Field> = []
  if (!body.subarray(0, dashed.length).equals(dashed)) return Result.fail("The form must begin with its boundary.")
  for (let from = dashed.length; ; ) {
    const next = body.toString("latin1", from, from + 2)
    if (next === "--") {
      const rest = body.toString("latin1", from + 2)
      return rest === "" || rest === crlf ? Result.succeed(found) : Result.fail("The form goes on behind its end.")
    }
    const end = body.indexOf(dashed, from)
    if (end === -1) return Result.fail(unended)
    if (next !== crlf || body.toString("latin1", end - 2, end) !== crlf) {
      return Result.fail("The boundaries of the form must be lines of their own, which end with CR LF.")
    }
    const field = fieldOf(body.subarray(from + 2, end - 2))
    if (field === undefined) {
      return Result.fail("A part of the form has a head that is not plain: one content-disposition, with one name.")
    }
    found.push(field)
    from = end + dashed.length
  }
}

const fieldOf = (part: Buffer): Field | undefined => {
  const end = part.indexOf(`${crlf}${crlf}`)
  if (end === -1) return undefined
  const headers = part
    .toString("utf8", 0, end)
    .split(crlf)
    .map((line) => header.exec(line))
  if (headers.includes(null)) return undefined
  const all = (name: string) => headers.flatMap((found) => (found?.[1]?.toLowerCase() === name ? [found[2] ?? ""] : []))
  const [text = "", ...others] = all("content-disposition")
  const content = part.subarray(end + 4)
  const [, ofFile] = others.length === 0 ? (fileDisposition.exec(text) ?? []) : []
  if (ofFile !== undefined) return { name: ofFile, isFile: true, bytes: content.length, text: undefined }
  const disposition = withParameters(text)
  if (others.length > 0 || disposition?.value.toLowerCase() !== "form-data") return undefined
  if (disposition.parameters.some(([name]) => !known.has(name))) return undefined
  if (all("content-transfer-encoding").some((encoding) => !/^(?:7bit|8bit|binary)$/i.test(encoding))) return undefined
  const name = only(disposition.parameters, "name")
  if (name === undefined || name.includes("\\")) return undefined
  const isFile = disposition.parameters.length > 1
  const isText = !isFile && !all("content-type").some((type) => otherCharset.test(type))
  return { name, isFile, bytes: content.length, text: isText ? textOf(content) : undefined }
}

/** Clients differ in how they write a quotation mark or a backslash in a file's name; here nothing hangs on it. */
const fileDisposition = /^form-data;[ \t]*name="([^"\\]+)";[ \t]*filename="[^;=]*"$/i

/** On one line: others have been folded. */
const header = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*?)[ \t]*$/
const known: ReadonlySet<string> = new Set(["name", "filename", "filename*"])
const otherCharset = /charset(?!\s*=\s*"?(?:utf-?8|us-ascii)\b)/i

type Parameters = ReadonlyArray<readonly [name: string, value: string]>

/** A header's value and its parameters; none where it is not written as RFC 9110 says. */
const withParameters = (text: string): { readonly value: string; readonly parameters: Parameters } | undefined => {
  const [value] = /^[^\s;"]+/.exec(text) ?? []
  if (value === undefined) return undefined
  const parameters: Array<readonly [string, string]> = []
  for (let at = value.length; at < text.length; at = parameter.lastIndex) {
    parameter.lastIndex = at
    const [, name = "", quoted, plain = ""] = parameter.exec(text) ?? []
    if (name === "") return undefined
    parameters.push([name.toLowerCase(), quoted ?? plain])
  }
  return { value, parameters }
}

const parameter = /[ \t]*;[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\[^"])*)"|([^\s;"\\,]+))[ \t]*/y

const only = (parameters: Parameters, name: string): string | undefined => {
  const [value, ...others] = parameters.flatMap(([one, value]) => (one === name ? [value] : []))
  return others.length === 0 && value !== "" ? value : undefined
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const textOf = (bytes: Buffer): string | undefined => {
  if (bytes.length > maxValueBytes) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}
