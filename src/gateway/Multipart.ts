import { Result } from "effect"

const boundaryParameter = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i
const nameParameter = /;\s*name=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i
const fileParameter = /;\s*filename\*?=/i
const disposition = /^content-disposition:\s*form-data\s*(;.*)$/im

/** What is longer can be equal to no rule's text. */
const maxValueBytes = 16_384

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * The fields of a `multipart/form-data` body that are called as `wanted` says, as text. Files, and fields that are no
 * UTF-8, are passed over. Of a field that stands there twice nobody knows which one its reader takes, so it is refused.
 */
export const fields = (
  contentType: string,
  body: Buffer,
  wanted: ReadonlySet<string>
): Result.Result<ReadonlyMap<string, string>, string> => {
  const [, quoted, plain] = boundaryParameter.exec(contentType) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) return Result.fail("The content-type of the form names no boundary.")
  const found = new Map<string, string>()
  const seen = new Set<string>()
  const opening = Buffer.from(`--${boundary}`)
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  let from = body.subarray(0, opening.length).equals(opening) ? opening.length : after(body, delimiter, 0)
  for (;;) {
    if (from === -1) return Result.fail("The form has no end: a boundary is missing.")
    if (body.subarray(from, from + 2).toString("latin1") === "--") return Result.succeed(found)
    const head = body.indexOf("\r\n", from)
    const content = head === -1 ? -1 : body.indexOf("\r\n\r\n", head)
    const end = content === -1 ? -1 : body.indexOf(delimiter, content + 2)
    if (end === -1) return Result.fail("The form has no end: a boundary is missing.")
    const parameters = disposition.exec(body.toString("utf8", head + 2, content))?.[1] ?? ""
    const [, quotedName, plainName] = nameParameter.exec(parameters) ?? []
    const name = quotedName?.replace(/\\(.)/g, "$1") ?? plainName
    if (name !== undefined && wanted.has(name) && !fileParameter.test(parameters)) {
      if (seen.has(name)) return Result.fail(`The form has the field ${name} twice.`)
      seen.add(name)
      const value = textOf(body.subarray(Math.min(content + 4, end), end))
      if (value !== undefined) found.set(name, value)
    }
    from = end + delimiter.length
  }
}

const after = (body: Buffer, part: Buffer, from: number): number => {
  const at = body.indexOf(part, from)
  return at === -1 ? -1 : at + part.length
}

const textOf = (bytes: Buffer): string | undefined => {
  if (bytes.length > maxValueBytes) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}
