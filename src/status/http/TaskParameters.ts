import { createHash } from "node:crypto"
import { Result } from "effect"
import type { TaskFilter, TaskPosition } from "../tasks/TaskIndex.ts"
import type { InvalidParameter } from "./ErrorBody.ts"

type Decoded<A> = Result.Result<A, ReadonlyArray<InvalidParameter>>

export interface TaskListQuery {
  readonly filter: TaskFilter
  readonly limit: number
  readonly after: TaskPosition | undefined
}

const maxLimit = 200
const defaultLimit = 100
const maxText = 255

/** The parameters of a filter, and the fields that they compare. */
const equalities = {
  status: "status",
  type: "task_type",
  queue: "queue",
  worker: "worker",
  parent: "parent_id",
  error: "error_class"
} as const

const attributePrefix = "attr."

/** Reads a filter from a query. `attributes`: the declared ones. Empty values are ignored, because forms send every field. */
export const filter = (
  query: URLSearchParams,
  attributes: ReadonlyArray<string>,
  nowMs: number,
  paging: ReadonlyArray<string> = []
): Decoded<TaskFilter> => {
  const known = new Set<string>([...Object.keys(equalities), "q", "ended", "since", "until", ...paging])
  const problems: Array<InvalidParameter> = []
  const found: Record<string, string> = {}
  const wanted: Record<string, string> = {}
  for (const [name, value] of query) {
    if (value === "" && name !== "cursor") continue
    if (name.startsWith(attributePrefix)) {
      const attribute = name.slice(attributePrefix.length)
      if (!attributes.includes(attribute)) problems.push(problem(name, undeclared(attributes)))
      else wanted[attribute] = value
    } else if (!known.has(name)) problems.push(problem(name, `is unknown: use ${[...known].join(", ")} or attr.<name>`))
    if (name !== "cursor" && value.length > maxText)
      problems.push(problem(name, `must have at most ${maxText} characters`))
    if (value.includes("\0")) problems.push(problem(name, "must not contain the character NUL"))
  }
  for (const [name, field] of Object.entries(equalities)) {
    const value = query.get(name)
    if (value !== null && value !== "") found[field] = value
  }
  const ended = query.get("ended") ?? ""
  if (!["", "true", "false"].includes(ended)) problems.push(problem("ended", "must be true or false"))
  const since = timeOf(query, "since", nowMs, problems)
  const until = timeOf(query, "until", nowMs, problems)
  if (since !== undefined && until !== undefined && since >= until) {
    problems.push(problem("until", "must be later than since"))
  }
  if (problems.length > 0) return Result.fail(problems)
  const q = query.get("q")
  return Result.succeed({
    ...found,
    ...(q !== null && q !== "" && { q }),
    ...(ended !== "" && { ended: ended === "true" }),
    ...(Object.keys(wanted).length > 0 && { attributes: wanted }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until })
  })
}

export const list = (
  query: URLSearchParams,
  attributes: ReadonlyArray<string>,
  nowMs: number
): Decoded<TaskListQuery> =>
  Result.gen(function* () {
    const read = yield* filter(query, attributes, nowMs, ["limit", "cursor"])
    const given = query.get("limit")
    const limit = given === null || given === "" ? defaultLimit : /^\d{1,9}$/.test(given) ? Number(given) : 0
    if (limit < 1 || limit > maxLimit) return yield* fail("limit", `must be an integer from 1 to ${maxLimit}`)
    const cursor = query.get("cursor")
    if (cursor === null) return { filter: read, limit, after: undefined }
    const decoded = decodeCursor(cursor)
    if (decoded === undefined) return yield* fail("cursor", "was not issued by this list: start again without a cursor")
    if (decoded.of !== digestOf(query)) {
      return yield* fail("cursor", "belongs to a list with another filter: start again without a cursor")
    }
    return { filter: read, limit, after: decoded.after }
  })

/** A cursor carries a digest of the filter as the client wrote it, so that a relative time may pass meanwhile. */
export const encodeCursor = (query: URLSearchParams, { id, micros }: TaskPosition): string =>
  Buffer.from(JSON.stringify([digestOf(query), micros, id])).toString("base64url")

const maxCursor = 2_048

const decodeCursor = (text: string): { readonly of: string; readonly after: TaskPosition } | undefined => {
  if (text.length > maxCursor) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(text, "base64url").toString())
    if (!Array.isArray(value)) return undefined
    const [of, micros, id]: ReadonlyArray<unknown> = value
    return typeof of === "string" && Number.isSafeInteger(micros) && typeof id === "string" && !id.includes("\0")
      ? { of, after: { micros: Number(micros), id } }
      : undefined
  } catch {
    return undefined
  }
}

const digestOf = (query: URLSearchParams): string => {
  const parts = [...query].filter(([name, value]) => value !== "" && name !== "cursor" && name !== "limit")
  return createHash("sha256")
    .update(JSON.stringify(parts.sort(([one], [other]) => (one < other ? -1 : 1))))
    .digest("base64url")
    .slice(0, 16)
}

const units: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400 }

/** A time is an age such as `2h`, or an ISO 8601 time with its offset. */
const timeOf = (
  query: URLSearchParams,
  name: "since" | "until",
  nowMs: number,
  problems: Array<InvalidParameter>
): number | undefined => {
  const text = query.get(name)
  if (text === null || text === "") return undefined
  const [, count, unit = ""] = /^(\d{1,5})([mhd])$/.exec(text) ?? []
  if (count !== undefined) return (nowMs - Number(count) * (units[unit] ?? 0) * 1_000) * 1_000
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/.test(text)
  const ms = isTime ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms)) {
    problems.push(problem(name, "must be an age such as 15m, 2h or 7d, or a time such as 2026-11-26T10:00:00Z"))
    return undefined
  }
  return ms * 1_000
}

const undeclared = (attributes: ReadonlyArray<string>): string =>
  attributes.length === 0
    ? "is no attribute: declare up to 8 members of meta in taskIndex.attributes"
    : `is no declared attribute: use ${attributes.map((name) => `attr.${name}`).join(", ")}`

const problem = (name: string, msg: string): InvalidParameter => ({ loc: ["query", name], msg })

const fail = (name: string, msg: string): Result.Result<never, ReadonlyArray<InvalidParameter>> =>
  Result.fail([problem(name, msg)])
