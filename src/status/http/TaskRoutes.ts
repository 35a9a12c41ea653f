import { Clock, Context, Effect, type Layer, type Result } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { type ContractAliasConfig, ContractAliases } from "../../messaging/topology/Aliases.ts"
import type { IndexedTask } from "../tasks/IndexedTask.ts"
import { exactUpTo, type Looked, type TaskFilter, TaskIndex, type TaskIndexError } from "../tasks/TaskIndex.ts"
import { type IndexState, TaskIndexer } from "../tasks/TaskIndexer.ts"
import { type InvalidParameter, invalidParameters, unavailable } from "./ErrorBody.ts"
import * as ErrorResponses from "./ErrorResponses.ts"
import * as RequestParameters from "./RequestParameters.ts"
import * as TaskParameters from "./TaskParameters.ts"

export interface Options {
  /** The path in front of all routes, without a slash at its end. Default: none. */
  readonly basePath?: `/${string}` | ""
  readonly aliasConfig?: ContractAliasConfig
}

type Requirements = TaskIndex | TaskIndexer

/** The HTTP routes that find tasks: `/tasks` and `/tasks/counts`. */
export const layer = (options: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter | Requirements> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const services = Context.pick(TaskIndex, TaskIndexer)(yield* Effect.context<Requirements>())
      const aliases = options.aliasConfig ?? (yield* ContractAliases)
      const base = options.basePath ?? ""
      const add = (path: `/${string}`, handler: Handler) => {
        const full: `/${string}` = `/${`${base}${path}`.slice(1)}`
        return Effect.andThen(
          router.add(
            "GET",
            full,
            ErrorResponses.catchDefects(Effect.catch(handler, toResponse)).pipe(Effect.provideContext(services))
          ),
          ErrorResponses.refuseOtherMethods(router, full, ["GET"])
        )
      }
      yield* add("/tasks", tasks(aliases))
      yield* add("/tasks/counts", counts)
    })
  )

interface Invalid {
  readonly _tag: "Invalid"
  readonly parameters: ReadonlyArray<InvalidParameter>
}

type Handler = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  TaskIndexError | Invalid,
  Requirements | HttpServerRequest.HttpServerRequest
>

const toResponse = (error: Effect.Error<Handler>) =>
  error._tag === "Invalid"
    ? Effect.succeed(invalidParameters(error.parameters))
    : Effect.as(
        Effect.logWarning("A request failed with 503, because the index of tasks cannot be read", error.message),
        unavailable("The index of tasks is unavailable: try again in a moment. GET /status/{task_id} still works.")
      )

const orInvalid = <A>(read: Result.Result<A, ReadonlyArray<InvalidParameter>>): Effect.Effect<A, Invalid> =>
  Effect.mapError(Effect.fromResult(read), (parameters) => ({ _tag: "Invalid", parameters }))

const tasks = (aliases: ContractAliasConfig | undefined): Handler =>
  Effect.gen(function* () {
    const [index, indexer, query] = [yield* TaskIndex, yield* TaskIndexer, yield* RequestParameters.query]
    const now = yield* Clock.currentTimeMillis
    const { after, filter, limit } = yield* orInvalid(TaskParameters.list(query, indexer.attributes, now))
    const field = aliases?.fieldName("task_id") ?? "task_id"
    // With other filters the task that has this id may not match.
    const isOfIdOnly = after === undefined && Object.keys(filter).length === 1
    const exact = isOfIdOnly && filter.q !== undefined ? yield* index.get(filter.q) : undefined
    const state = stateOf(index, yield* indexer.state)
    if (exact !== undefined) {
      const looked = { complete: false, back_to: null, sentence: "Found by its id. Other tasks were not looked at." }
      return HttpServerResponse.jsonUnsafe({
        tasks: [publicTask(exact, field)],
        next_cursor: null,
        looked,
        index: state
      })
    }
    const page = yield* index.list(filter, { limit, after })
    return HttpServerResponse.jsonUnsafe({
      tasks: page.tasks.map((task) => publicTask(task, field)),
      next_cursor: page.next === undefined ? null : TaskParameters.encodeCursor(query, page.next),
      looked: lookedBody(page.looked, filter, index, page.tasks.length === limit),
      index: state
    })
  })

const counts: Handler = Effect.gen(function* () {
  const [index, indexer, query] = [yield* TaskIndex, yield* TaskIndexer, yield* RequestParameters.query]
  const now = yield* Clock.currentTimeMillis
  const filter = yield* orInvalid(TaskParameters.filter(query, indexer.attributes, now))
  const found = yield* index.counts(filter)
  return HttpServerResponse.jsonUnsafe({
    counts: found.counts,
    exact_up_to: exactUpTo,
    looked: lookedBody(found.looked, filter, index, false),
    index: stateOf(index, yield* indexer.state)
  })
})

const iso = (micros: number): string => new Date(Math.floor(micros / 1_000)).toISOString()

const publicTask = ({ first_micros, last_micros, task_id, ...rest }: IndexedTask, field: string) => ({
  [field]: task_id,
  ...rest,
  first_at: iso(first_micros),
  last_at: iso(last_micros),
  duration_ms: Math.round((last_micros - first_micros) / 1_000)
})

const lookedBody = (
  { backTo, complete }: Looked,
  filter: TaskFilter,
  { kept }: TaskIndex["Service"],
  isFullPage: boolean
) => ({
  complete,
  back_to: backTo === undefined ? null : iso(backTo),
  sentence: complete
    ? `Looked at all tasks ${rangeWords(filter)}.`
    : isFullPage
      ? "Looked no further than this page. next_cursor continues."
      : `Looked at the newest ${kept.looksAtMost.toLocaleString("en")} tasks${backTo === undefined ? "" : `, back to ${iso(backTo)}`}. next_cursor looks further.`
})

const rangeWords = ({ since, until }: TaskFilter): string => {
  if (since !== undefined && until !== undefined) return `from ${iso(since)} to ${iso(until)}`
  if (since !== undefined) return `since ${iso(since)}`
  return until === undefined ? "of the index" : `until ${iso(until)}`
}

const stateOf = ({ kept }: TaskIndex["Service"], { backfilled, caughtUp, failure }: IndexState) => ({
  store: kept.store,
  tasks_at_most: kept.tasksAtMost,
  days: kept.days,
  caught_up: caughtUp,
  backfilled,
  failure
})
