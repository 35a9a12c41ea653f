import { Effect, type Layer, Option, Result } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import type { JsonObject } from "../messaging/envelope/Envelope.ts"
import { type ContractAliasConfig, ContractAliases } from "../messaging/topology/Aliases.ts"
import type { RedisError } from "../services/Redis.ts"
import { invalidParameters, refusal, unavailable } from "../status/http/ErrorBody.ts"
import * as ErrorResponses from "../status/http/ErrorResponses.ts"
import * as LargeResponses from "../status/http/LargeResponses.ts"
import * as RequestParameters from "../status/http/RequestParameters.ts"
import { ExecutionGraphService } from "./ExecutionGraphService.ts"
import { buildExecutionView } from "./ExecutionView.ts"
import { executionGraphMermaid } from "./Mermaid.ts"

export interface Options {
  /** Renames the outermost `task_id`, also in errors. Default: `ContractAliases`, which `StatusRuntime` sets. */
  readonly aliasConfig?: ContractAliasConfig
  /** The path before the task id. After the id, `/graph`, `/view` or `/explain` follows. Default: `/executions`. */
  readonly executionsPath?: `/${string}`
}

/**
 * Serves the graph of a task:
 *
 * - `GET /executions/{task_id}/graph`: the graph as JSON, or with `?format=mermaid` as Mermaid text
 * - `GET /executions/{task_id}/view`: the graph as JSON and as Mermaid text, for the page of a task
 * - `GET /executions/{task_id}/explain`: why the task is not done
 *
 * Responds with 404 if nothing is stored about the task. The router needs a `maxParamLength` of 765, because
 * percent-encoding may triple the 255 bytes of a task id.
 */
export const layer = (
  options: Options = {}
): Layer.Layer<never, never, HttpRouter.HttpRouter | ExecutionGraphService> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const service = yield* ExecutionGraphService
      const withMemoryLease = yield* LargeResponses.make
      const { executionsPath = "/executions" } = options
      const aliasConfig = options.aliasConfig ?? (yield* ContractAliases)
      const outward = (body: JsonObject) => HttpServerResponse.jsonUnsafe(aliased(body, aliasConfig))
      const add = <A>(
        name: string,
        ask: (taskId: string) => Effect.Effect<Option.Option<A>, RedisError>,
        answer: (found: A, query: URLSearchParams) => HttpServerResponse.HttpServerResponse
      ) => {
        const path: HttpRouter.PathInput = `${executionsPath}/:task_id/${name}`
        return Effect.andThen(
          router.add("GET", path, ErrorResponses.catchDefects(handler(aliasConfig, withMemoryLease, ask, answer))),
          ErrorResponses.refuseOtherMethods(router, path, ["GET"])
        )
      }

      yield* add("graph", service.graph, (graph, query) => {
        const format = query.get("format") ?? "json"
        if (format === "json") return outward(graph)
        if (format === "mermaid") return HttpServerResponse.text(executionGraphMermaid(graph))
        return invalidParameters([{ loc: ["query", "format"], msg: "must be json or mermaid" }])
      })
      yield* add("view", service.graph, (graph) => outward(buildExecutionView(graph)))
      yield* add("explain", service.explain, outward)
    })
  )

const handler = <A>(
  aliases: ContractAliasConfig | undefined,
  holding: LargeResponses.ResponseLimiter,
  ask: (taskId: string) => Effect.Effect<Option.Option<A>, RedisError>,
  answer: (found: A, query: URLSearchParams) => HttpServerResponse.HttpServerResponse
) =>
  Effect.gen(function* () {
    const name = aliases?.httpName("task_id") ?? "task_id"
    const read = yield* RequestParameters.taskId(aliases)
    if (Result.isFailure(read)) return invalidParameters(read.failure)
    const taskId = read.success
    const query = yield* RequestParameters.query
    return yield* holding(
      Effect.map(
        ask(taskId),
        Option.match({
          onNone: () =>
            refusal(
              404,
              `There is no status, observation or dead letter with ${name} ${JSON.stringify(taskId)}: the task was never published, or its data has expired.`
            ),
          onSome: (found) => answer(found, query)
        })
      )
    )
  }).pipe(
    Effect.catchTag("NoPlace", (error) => Effect.succeed(LargeResponses.refusalOf(error))),
    Effect.catchTag("RedisError", (error) =>
      Effect.as(
        Effect.logWarning(
          "A request failed with 503, because the statuses, observations and dead letters of a task could not be read",
          error.message
        ),
        unavailable("The data of the task cannot be read now: try again in a moment.")
      )
    )
  )

/** Renames only the outermost `task_id`. The renamed member comes last. */
const aliased = ({ task_id, ...rest }: JsonObject, aliases: ContractAliasConfig | undefined): JsonObject => {
  const name = aliases?.fieldName("task_id") ?? "task_id"
  return name === "task_id" ? { task_id, ...rest } : { ...rest, [name]: task_id }
}
