import { Context, Effect, type Layer, Option, Result } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import * as BodyMemory from "../../http/BodyMemory.ts"
import { type ContractAliasConfig, ContractAliases } from "../../messaging/topology/Aliases.ts"
import type { RedisError } from "../../services/Redis.ts"
import { HubProgress } from "../hub/StatusHub.ts"
import { type NotPaused, QueueBoard, type UnknownQueue } from "../queues/QueueBoard.ts"
import { type Cancellation, TaskCancellation, type TaskEnded, type TooManyCancels } from "../queues/TaskCancellation.ts"
import { TopologyMap } from "../queues/TopologyMap.ts"
import { invalidParameters, noRoom, refusal, unavailable } from "./ErrorBody.ts"
import * as ErrorResponses from "./ErrorResponses.ts"
import * as OperationBody from "./OperationBody.ts"
import * as RequestParameters from "./RequestParameters.ts"

export interface Options {
  /** The path in front of all routes, without a slash at its end. Default: none. */
  readonly basePath?: `/${string}` | ""
  /** The names of paths. Default: `ContractAliases`, which `StatusRuntime` sets. */
  readonly aliasConfig?: ContractAliasConfig
}

type Requirements = QueueBoard | TaskCancellation | TopologyMap | HubProgress

/**
 * The HTTP routes of queues and workers: `/queues`, `/queues/{queue}/pause`, `/queues/{queue}/resume`, `/workers`,
 * `/topology`, `/tasks/{task_id}/cancel` and `/tasks/{task_id}/cancel/withdraw`.
 */
export const layer = (options: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter | Requirements> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const services = Context.pick(
        QueueBoard,
        TaskCancellation,
        TopologyMap,
        HubProgress
      )(yield* Effect.context<Requirements>())
      const aliases = options.aliasConfig ?? (yield* ContractAliases)
      const room = BodyMemory.make()
      const base = options.basePath ?? ""
      const allowed = new Map<`/${string}`, ReadonlyArray<"GET" | "POST">>()
      const add = (method: "GET" | "POST", path: `/${string}`, handler: Handler) => {
        const full: `/${string}` = `/${`${base}${path}`.slice(1)}`
        allowed.set(full, [...(allowed.get(full) ?? []), method])
        return router.add(
          method,
          full,
          ErrorResponses.catchDefects(Effect.catch(handler, toResponse)).pipe(Effect.provideContext(services))
        )
      }
      yield* add("GET", "/queues", queues)
      yield* add("GET", "/workers", workers)
      yield* add("GET", "/topology", topology)
      yield* add("POST", "/queues/:queue/pause", pause(room))
      yield* add("POST", "/queues/:queue/resume", resume)
      yield* add("POST", "/tasks/:task_id/cancel", cancel(room, aliases))
      yield* add("GET", "/tasks/:task_id/cancel", cancelRequest(aliases))
      yield* add("POST", "/tasks/:task_id/cancel/withdraw", withdraw(aliases))
      for (const [path, methods] of allowed) yield* ErrorResponses.refuseOtherMethods(router, path, methods)
    })
  )

type Handler = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  | RedisError
  | UnknownQueue
  | NotPaused
  | TaskEnded
  | TooManyCancels
  | BodyMemory.NoRoom
  | OperationBody.Unreadable
  | OperationBody.Invalid,
  Requirements | HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext
>

const toResponse = (error: Effect.Error<Handler>): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  switch (error._tag) {
    case "RedisError":
      return Effect.as(
        Effect.logWarning("A request failed with 503, because Redis cannot be read", error.message),
        unavailable("Redis is unavailable, where queues and workers report: try again in a moment.")
      )
    case "UnknownQueue":
      return Effect.succeed(refusal(404, error.message))
    case "NotPaused":
    case "TaskEnded":
      return Effect.succeed(refusal(409, error.message))
    case "TooManyCancels":
      return Effect.succeed(refusal(503, error.message, { "retry-after": "60" }))
    case "NoRoom":
      return Effect.succeed(noRoom(error))
    case "Unreadable":
      return Effect.succeed(refusal(413, error.detail))
    case "Invalid":
      return Effect.succeed(invalidParameters(error.parameters))
  }
}

const ok = (body: unknown, status = 200) => HttpServerResponse.jsonUnsafe(body, { status })

/** What the hub of this process tells: whether histories, lists and graphs of tasks are behind. */
export interface HubState {
  /** The age of the oldest status that the hub has received and not stored. `null` until the hub has started. */
  readonly lag_ms: number | null
}

const hubState = Effect.gen(function* () {
  const { lagMs } = yield* HubProgress
  const state: HubState = { lag_ms: (yield* lagMs) ?? null }
  return state
})

const queues = Effect.gen(function* () {
  const board = yield* QueueBoard
  return ok({ queues: yield* board.queues, broker: yield* board.broker, hub: yield* hubState })
})

const workers = Effect.gen(function* () {
  const board = yield* QueueBoard
  return ok({ workers: yield* board.workers })
})

const topology = Effect.gen(function* () {
  return ok(yield* (yield* TopologyMap).view)
})

/** The router decodes the segment. A queue is looked up by its whole name. */
const queueName = Effect.map(HttpRouter.params, ({ queue = "" }) => queue)

const pause = ({ withReservation }: BodyMemory.BodyMemory["Service"]) =>
  withReservation(Number(OperationBody.maxBytes))(
    Effect.gen(function* () {
      const why = yield* OperationBody.read
      const board = yield* QueueBoard
      const { by, paused_at, queue, reason } = yield* board.pause(yield* queueName, why)
      return ok({
        queue,
        paused: { reason, by, paused_at },
        detail:
          "Workers take no more messages of this queue within 2 seconds. Messages in work are finished, and the others wait. POST …/resume ends the pause."
      })
    })
  )

const resume = Effect.gen(function* () {
  const board = yield* QueueBoard
  const { by, paused_at, queue, reason } = yield* board.resume(yield* queueName)
  return ok({
    queue,
    paused: null,
    was_paused: { reason, by, paused_at },
    detail: "Workers take messages of this queue again within 2 seconds."
  })
})

const withTask = <A, E, R>(
  aliases: ContractAliasConfig | undefined,
  handler: (taskId: string) => Effect.Effect<A, E, R>
) =>
  Effect.flatMap(
    RequestParameters.taskId(aliases),
    (taskId): Effect.Effect<A, E | OperationBody.Invalid, R> =>
      Result.isSuccess(taskId)
        ? handler(taskId.success)
        : Effect.fail<OperationBody.Invalid>({ _tag: "Invalid", parameters: taskId.failure })
  )

const cancel = ({ withReservation }: BodyMemory.BodyMemory["Service"], aliases: ContractAliasConfig | undefined) =>
  withReservation(Number(OperationBody.maxBytes))(
    withTask(aliases, (taskId) =>
      Effect.gen(function* () {
        const why = yield* OperationBody.read
        const cancellation = yield* (yield* TaskCancellation).cancel({ taskId, ...why })
        return ok(cancellationBody(cancellation), cancellation.outcome === "cancelled" ? 200 : 202)
      })
    )
  )

const cancellationBody = ({ outcome, request }: Cancellation) => ({
  ...request,
  state: outcome,
  detail: {
    cancelled: `Worker ${request.worker} has interrupted the handler, and the task has the status cancelled.`,
    interrupting: `Worker ${request.worker} has interrupted the handler, which has not ended yet. GET …/cancel shows when it has.`,
    not_held:
      "No worker holds the task. If a message of it waits in a queue or for its retry, the worker that gets it does not handle it and publishes the status cancelled. POST …/cancel/withdraw takes the request back."
  }[outcome]
})

const cancelRequest = (aliases: ContractAliasConfig | undefined) =>
  withTask(aliases, (taskId) =>
    Effect.gen(function* () {
      const found = yield* (yield* TaskCancellation).requestOf(taskId)
      return Option.isSome(found) ? ok(found.value) : refusal(404, `Nobody has asked to cancel task ${taskId}.`)
    })
  )

const withdraw = (aliases: ContractAliasConfig | undefined) =>
  withTask(aliases, (taskId) =>
    Effect.gen(function* () {
      const found = yield* (yield* TaskCancellation).withdraw(taskId)
      return found
        ? ok({ task_id: taskId, withdrawn: true })
        : refusal(404, `Nobody has asked to cancel task ${taskId}, so there is nothing to withdraw.`)
    })
  )
