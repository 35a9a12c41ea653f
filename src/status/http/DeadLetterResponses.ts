import { ByteSize, Effect, type Result } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type * as BodyMemory from "../../http/BodyMemory.ts"
import type { JsonObject } from "../../messaging/envelope/Envelope.ts"
import type { ContractAliasConfig } from "../../messaging/topology/Aliases.ts"
import type { ConcurrencyLimitReached } from "../../services/ConcurrencyLimit.ts"
import type { RedisError } from "../../services/Redis.ts"
import type { UnknownCursor } from "../dead-letters/DeadLetterStore.ts"
import type * as QueuedLetters from "../dead-letters/QueuedLetters.ts"
import type * as LetterEdit from "../replay/LetterEdit.ts"
import type { ReplayError } from "../replay/Replay.ts"
import type { ReplayJobRefused } from "../replay/ReplayJobs.ts"
import { type InvalidParameter, invalidParameters, noRoom, refusal, unavailable } from "./ErrorBody.ts"
import * as LargeResponses from "./LargeResponses.ts"
import * as OperationBody from "./OperationBody.ts"

/** The maximum size of a request body. A list of 10,000 ids fits into it. */
export const maxBody = ByteSize.mebibytes(1)

export type RouteError =
  | QueuedLetters.QueueWalkFailed
  | RedisError
  | ConcurrencyLimitReached
  | BodyMemory.NoRoom
  | UnknownCursor
  | ReplayError
  | ReplayJobRefused
  | LetterEdit.InvalidEdit
  | LetterEdit.EditRefused
  | Invalid
  | Plain

export interface Invalid {
  readonly _tag: "Invalid"
  readonly parameters: ReadonlyArray<InvalidParameter>
}

export interface Plain {
  readonly _tag: "Plain"
  readonly status: number
  readonly detail: string
}

export const failWith = (status: number, detail: string): Effect.Effect<never, Plain> =>
  Effect.fail({ _tag: "Plain", status, detail })

export const orInvalid = <A>(read: Result.Result<A, ReadonlyArray<InvalidParameter>>): Effect.Effect<A, Invalid> =>
  Effect.mapError(Effect.fromResult(read), (parameters) => ({ _tag: "Invalid", parameters }))

export const withErrorResponses = <R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, RouteError, R>) =>
  Effect.catch(handler, (error) =>
    error._tag === "RedisError"
      ? Effect.as(
          Effect.logWarning(
            "A request failed with 503, because the index of dead letters cannot be read",
            error.message
          ),
          toResponse(error)
        )
      : Effect.succeed(toResponse(error))
  )

const toResponse = (error: RouteError): HttpServerResponse.HttpServerResponse => {
  switch (error._tag) {
    case "Invalid":
      return invalidParameters(error.parameters)
    case "Plain":
      return refusal(error.status, error.detail)
    case "UnknownCursor":
      return invalidParameters([
        { loc: ["query", "cursor"], msg: "was not issued by this index: start again without a cursor" }
      ])
    case "RedisError":
      return unavailable("The index of dead letters is unavailable: try again in a moment.")
    case "NoPlace":
      return LargeResponses.refusalOf(error)
    case "NoRoom":
      return noRoom(error)
    case "QueueWalkFailed":
      if (error.reason === "unavailable") return unavailable(error.message)
      return refusal(error.reason === "busy" ? 409 : 404, error.message)
    case "ReplayJobRefused":
      return error.reason === "too_many"
        ? unavailable("Too many replay jobs are running: wait until one finishes, or cancel one.")
        : refusal(422, "This Idempotency-Key was used for another request: use a new key for a new request.")
    case "InvalidEdit":
      return invalidParameters(error.mistakes.map(({ field, problem }) => ({ loc: ["body", field], msg: problem })))
    case "EditRefused":
      if (error.reason === "unavailable") return unavailable(error.message)
      return refusal(error.reason === "absent" ? 404 : 409, error.message)
    case "ReplayError":
      return replayRefusal(replayStatus[error.reason], error.message)
  }
}

const replayRefusal = (status: number, message: string) =>
  status === 503 ? unavailable(message) : refusal(status, message)

/** The HTTP status of each failure. `no_queue` is a conflict (409), because the request itself is valid. */
const replayStatus: Readonly<Record<ReplayError["reason"], number>> = {
  absent: 404,
  replayed: 409,
  begun: 409,
  in_progress: 409,
  replay_unknown: 409,
  changed: 409,
  replaced: 409,
  archived: 409,
  no_queue: 409,
  refused: 503,
  unavailable: 503,
  unknown: 504
}

export const parameter = (name: string) => Effect.map(HttpRouter.params, (params) => params[name] ?? "")

export const ok = (body: unknown, status = 200) => HttpServerResponse.jsonUnsafe(body, { status })

/** Reads why an operator does something, and who says so. */
export const operationReason = Effect.mapError(OperationBody.read, (error): Plain | Invalid =>
  error._tag === "Unreadable" ? { _tag: "Plain", status: 413, detail: error.detail } : error
)

export const bodyText = (maxBytes: ByteSize.ByteSize) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ text }) =>
    text.pipe(
      Effect.provideService(HttpServerRequest.MaxBodySize, maxBytes),
      Effect.catch(() =>
        failWith(413, `The request body cannot be read or has more than ${maxBytes} bytes: send a smaller one.`)
      )
    )
  )

/** Renames `task_id` to its alias. A record or a filter has no other field with an alias. */
export const withTaskAlias = (aliases: ContractAliasConfig, object: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name === "task_id" ? aliases.fieldName(name) : name, value])
  )

/** Returns `undefined` for invalid JSON. */
export const parseOrUndefined = (text: string, parse: (text: string) => unknown = JSON.parse): unknown => {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}
