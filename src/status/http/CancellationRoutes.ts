import { Clock, Context, Effect, type Layer, Result } from "effect"
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import * as BodyMemory from "../../http/BodyMemory.ts"
import { type ContractAliasConfig, ContractAliases } from "../../messaging/topology/Aliases.ts"
import type { RedisError } from "../../services/Redis.ts"
import { type CancellationProblem, type CancellationRefused, Cancellations } from "../cancellations/Cancellations.ts"
import type { UnknownCursor } from "../dead-letters/DeadLetterStore.ts"
import type { TaskIndexError } from "../tasks/TaskIndex.ts"
import { TaskIndexer } from "../tasks/TaskIndexer.ts"
import * as Parameters from "./CancellationParameters.ts"
import * as DeadLetterParameters from "./DeadLetterParameters.ts"
import {
  bodyText,
  failWith,
  type Invalid,
  maxBody,
  ok,
  orInvalid,
  type Plain,
  parameter,
  parseOrUndefined
} from "./DeadLetterResponses.ts"
import { invalidParameters, noRoom, refusal, unavailable } from "./ErrorBody.ts"
import * as ErrorResponses from "./ErrorResponses.ts"
import * as RequestParameters from "./RequestParameters.ts"

export interface Options {
  /** The path in front of all routes, without a slash at its end. Default: none. */
  readonly basePath?: `/${string}` | ""
  readonly aliasConfig?: ContractAliasConfig
}

type Requirements = Cancellations | TaskIndexer

/**
 * The HTTP routes that cancel many tasks: `/tasks/cancellations`, `/tasks/cancellations/{id}` and
 * `/tasks/cancellations/{id}/stop` and `/withdraw`. `CancellationWorker.layer` must work on the jobs.
 */
export const layer = (options: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter | Requirements> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const services = Context.pick(Cancellations, TaskIndexer)(yield* Effect.context<Requirements>())
      const aliases = options.aliasConfig ?? (yield* ContractAliases)
      const room = BodyMemory.make()
      const path: `/${string}` = `/${`${options.basePath ?? ""}/tasks/cancellations`.slice(1)}`
      const add = (method: "GET" | "POST", path: `/${string}`, handler: Handler) =>
        router.add(
          method,
          path,
          ErrorResponses.catchDefects(Effect.catch(handler, toResponse)).pipe(Effect.provideContext(services))
        )
      yield* add("POST", path, room.withReservation(Number(maxBody))(create))
      yield* add("GET", path, list)
      yield* add("GET", `${path}/:cancellation_id`, detail(aliases))
      yield* add("POST", `${path}/:cancellation_id/stop`, stop)
      yield* add("POST", `${path}/:cancellation_id/withdraw`, withdraw)
      yield* ErrorResponses.refuseOtherMethods(router, path, ["GET", "POST"])
      yield* ErrorResponses.refuseOtherMethods(router, `${path}/:cancellation_id`, ["GET"])
      yield* ErrorResponses.refuseOtherMethods(router, `${path}/:cancellation_id/stop`, ["POST"])
      yield* ErrorResponses.refuseOtherMethods(router, `${path}/:cancellation_id/withdraw`, ["POST"])
    })
  )

type Handler = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  RedisError | TaskIndexError | UnknownCursor | CancellationRefused | BodyMemory.NoRoom | Plain | Invalid,
  Requirements | HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext
>

const toResponse = (error: Effect.Error<Handler>): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  switch (error._tag) {
    case "RedisError":
      return Effect.as(
        Effect.logWarning("A request failed with 503, because Redis cannot be read", error.message),
        unavailable("Redis is unavailable, where cancellations are stored: try again in a moment.")
      )
    case "TaskIndexError":
      return Effect.as(
        Effect.logWarning("A request failed with 503, because the index of tasks cannot be read", error.message),
        unavailable("The index of tasks is unavailable, so nothing was cancelled: try again in a moment.")
      )
    case "UnknownCursor":
      return Effect.succeed(
        invalidParameters([
          { loc: ["query", "cursor"], msg: "was not issued by this list: start again without a cursor" }
        ])
      )
    case "CancellationRefused":
      return Effect.succeed(
        error.reason === "too_many"
          ? unavailable("Too many cancellations are running: wait until one finishes, or stop one.")
          : refusal(422, "This Idempotency-Key was used for another request: use a new key for a new request.")
      )
    case "NoRoom":
      return Effect.succeed(noRoom(error))
    case "Plain":
      return Effect.succeed(refusal(error.status, error.detail))
    case "Invalid":
      return Effect.succeed(invalidParameters(error.parameters))
  }
}

const create = Effect.gen(function* () {
  const [jobs, indexer] = [yield* Cancellations, yield* TaskIndexer]
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const idempotencyKey = headers["idempotency-key"]
  if (idempotencyKey !== undefined && (idempotencyKey === "" || idempotencyKey.length > 255)) {
    return yield* orInvalid(Result.fail([{ loc: ["header", "Idempotency-Key"], msg: "must have 1 to 255 characters" }]))
  }
  const body = parseOrUndefined(yield* bodyText(maxBody))
  const { selection, why } = yield* orInvalid(
    Parameters.request(body, indexer.attributes, yield* Clock.currentTimeMillis)
  )
  const { existing, job } = yield* jobs.create({ selection, ...why, idempotencyKey })
  return ok(job, existing ? 200 : 202)
})

const list = Effect.gen(function* () {
  const page = yield* orInvalid(DeadLetterParameters.page(yield* RequestParameters.query))
  const jobs = yield* Cancellations
  const { items, next_cursor } = yield* jobs.list(page)
  return ok({
    cancellations: items,
    next_cursor,
    tasks_at_most: jobs.maxTasks,
    task_ids_at_most: Parameters.maxTaskIds
  })
})

const detail = (aliases: ContractAliasConfig | undefined) =>
  Effect.gen(function* () {
    const jobs = yield* Cancellations
    const id = yield* parameter("cancellation_id")
    const job = yield* jobs.get(id)
    if (job === undefined) return yield* unknown(id)
    const field = aliases?.fieldName("task_id") ?? "task_id"
    const problemOf = ({ detail, task_id }: CancellationProblem) => ({ [field]: task_id, detail })
    return ok({ ...job, problems: (yield* jobs.problems(id)).map(problemOf) })
  })

const stop = Effect.gen(function* () {
  const jobs = yield* Cancellations
  const id = yield* parameter("cancellation_id")
  const result = yield* jobs.stop(id)
  const job = yield* jobs.get(id)
  if (job === undefined) return yield* unknown(id)
  if (result === "stopped" || job.stopped !== null) return ok(job)
  return yield* failWith(
    409,
    "The workers of all of its tasks were asked already, so there is nothing to stop. POST /tasks/cancellations/{cancellation_id}/withdraw takes back what has no answer yet."
  )
})

const withdraw = Effect.gen(function* () {
  const jobs = yield* Cancellations
  const id = yield* parameter("cancellation_id")
  const result = yield* jobs.withdraw(id)
  const job = yield* jobs.get(id)
  if (job === undefined) return yield* unknown(id)
  if (result === "withdrawing") return ok(job, 202)
  return yield* failWith(
    409,
    // A job of this release has a list of the requests that it counts as `requested`.
    job.requested > 0
      ? "It ended under an earlier release, which kept no list of its open requests. Withdraw them one by one with POST /tasks/{task_id}/cancel/withdraw."
      : "Each of its requests has an answer or was withdrawn, so there is nothing to withdraw."
  )
})

const unknown = (id: string) => failWith(404, `There is no cancellation ${id}.`)
