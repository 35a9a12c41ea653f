import type { FieldError } from "../../../api/ApiError.ts"
import { parseExact } from "../../../api/exactJson.ts"
import type { Letter } from "../../../api/TaskTypes.ts"
import type { JsonProblem } from "../../../shared/editor/problems.ts"

/** Which part of the message is edited: the payload in its envelope, or the whole envelope. */
export type Part = "payload" | "body"

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The parts that the message has. One that is no JSON object has to be written anew, as a whole. */
export const partsOf = ({ body }: Letter): ReadonlyArray<Part> =>
  isObject(body) && isObject(body["payload"]) ? ["payload", "body"] : ["body"]

export const valueOf = ({ body }: Letter, part: Part): unknown =>
  part === "body" ? (isObject(body) ? body : {}) : isObject(body) ? body["payload"] : {}

/** Where the server has found mistakes, within the part that is edited. */
export const problemsIn = (part: Part, fields: ReadonlyArray<FieldError>): ReadonlyArray<JsonProblem> =>
  fields.flatMap(({ field, message }) => {
    const [first, ...path] = field.split(".")
    return first === part ? [{ path, message }] : []
  })

/** The mistakes of the stored payload, placed within the part that is edited. */
export const storedProblems = (part: Part, { payload_fit: { fields } }: Letter): ReadonlyArray<JsonProblem> =>
  problemsIn("payload", fields).map(({ message, path }) => ({
    path: part === "body" ? ["payload", ...path] : path,
    message
  }))

export type Read = { readonly value: unknown } | { readonly problem: string }

export const readJson = (text: string): Read => {
  try {
    const value: unknown = parseExact(text)
    return isObject(value) ? { value } : { problem: "It must be a JSON object." }
  } catch (cause) {
    return { problem: cause instanceof Error ? cause.message : "It is no JSON." }
  }
}
