import { ByteSize, Effect, Result } from "effect"
import { HttpServerRequest } from "effect/http"
import type { InvalidParameter } from "./ErrorBody.ts"

/** Why an operator does something, and who says so. */
export interface OperationReason {
  readonly reason: string
  readonly by: string | null
}

export interface Unreadable {
  readonly _tag: "Unreadable"
  readonly detail: string
}

export interface Invalid {
  readonly _tag: "Invalid"
  readonly parameters: ReadonlyArray<InvalidParameter>
}

export const maxBytes = ByteSize.kibibytes(4)

const maxReason = 500
const maxBy = 200

/** Reads the body `{"reason": …, "by": …}`. `by` may be missing. */
export const read: Effect.Effect<OperationReason, Unreadable | Invalid, HttpServerRequest.HttpServerRequest> =
  Effect.gen(function* () {
    const { text } = yield* HttpServerRequest.HttpServerRequest
    const body = yield* text.pipe(
      Effect.provideService(HttpServerRequest.MaxBodySize, maxBytes),
      Effect.mapError(
        (): Unreadable => ({
          _tag: "Unreadable",
          detail: `The request body cannot be read or has more than ${maxBytes} bytes.`
        })
      )
    )
    return yield* Effect.mapError(
      Effect.fromResult(of(parse(body))),
      (parameters): Invalid => ({ _tag: "Invalid", parameters })
    )
  })

/** Reads the reason out of a body that has other members, too. */
export const of = (
  given: Readonly<Record<string, unknown>> | undefined,
  otherNames: ReadonlyArray<string> = []
): Result.Result<OperationReason, ReadonlyArray<InvalidParameter>> => {
  const problems = problemsOf(given, otherNames)
  if (problems.length > 0) return Result.fail(problems)
  const { by, reason } = given ?? {}
  return Result.succeed({ reason: String(reason).trim(), by: typeof by === "string" ? by.trim() : null })
}

const parse = (text: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}

const problemsOf = (
  given: Readonly<Record<string, unknown>> | undefined,
  otherNames: ReadonlyArray<string>
): ReadonlyArray<InvalidParameter> => {
  if (given === undefined) return [problem("", 'must be a JSON object such as {"reason": "database maintenance"}')]
  const { by, reason, ...others } = given
  return [
    ...Object.keys(others)
      .filter((name) => !otherNames.includes(name))
      .map((name) => problem(name, `is unknown: use ${[...otherNames, "reason and by"].join(", ")}`)),
    ...(isText(reason, maxReason) ? [] : [problem("reason", `must be a text of 1 to ${maxReason} characters`)]),
    ...(by === undefined || by === null || isText(by, maxBy)
      ? []
      : [problem("by", `must be a text of 1 to ${maxBy} characters, or be missing`)])
  ]
}

const isText = (value: unknown, most: number): boolean =>
  typeof value === "string" && value.trim() !== "" && value.length <= most

const problem = (name: string, msg: string): InvalidParameter => ({ loc: ["body", name], msg })
