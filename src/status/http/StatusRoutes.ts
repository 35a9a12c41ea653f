import { Context, Effect, type Layer, Option, Result, type Scope } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { type ContractAliasConfig, ContractAliases } from "../../messaging/topology/Aliases.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import { HistoryReader } from "../history/History.ts"
import * as WaitingMessages from "../history/WaitingMessages.ts"
import { StatusStore } from "../store/StatusStore.ts"
import * as EventFrames from "../stream/EventFrames.ts"
import { EventStream } from "../stream/EventStream.ts"
import { makePresenter, type OutputAdapter } from "../stream/PublicEvent.ts"
import { invalidParameters, refusal, unavailable } from "./ErrorBody.ts"
import * as ErrorResponses from "./ErrorResponses.ts"
import * as HistoryParameters from "./HistoryParameters.ts"
import * as LargeResponses from "./LargeResponses.ts"
import * as RequestParameters from "./RequestParameters.ts"

export interface Options {
  /** The path of the event streams. Default: `/events/{task_id}`. */
  readonly eventsPath?: string
  /** The path of the history. Default: `/history`. */
  readonly historyPath?: string
  /** The path of the latest status. Default: `/status/{task_id}`. */
  readonly statusPath?: string
  /**
   * Whether `/history` refuses `source=stream` if the status queue is not a stream. Default: true. With `false`,
   * `/history` may scan a classic or quorum queue that has no consumer. A hub that starts during the scan receives
   * messages out of order. A quorum queue may count each scan towards its delivery limit.
   */
  readonly requireStream?: boolean
  /** The field names in bodies, paths and queries. Default: `ContractAliases`, which `StatusRuntime` sets. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /** Transforms the event of `/status`. If it throws an error, the error is logged and the response is a 500. */
  readonly latestOutputAdapter?: OutputAdapter
  /** Transforms each event of `/history`. If it throws an error, the error is logged and the response is a 500. */
  readonly historyOutputAdapter?: OutputAdapter
}

/** Options for `HttpRouter.serve`. A task id may have 255 bytes, but by default the router allows 100 characters. */
export const routerConfig = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
  maxParamLength: 1024
} as const

/**
 * The routes `GET /events/{task_id}`, `GET /history` and `GET /status/{task_id}`. They need the services `EventStream`,
 * `HistoryReader` and `StatusStore` respectively. A route without its service is left out.
 */
export const layer = (given: Options = {}): Layer.Layer<never, SettingsError, HttpRouter.HttpRouter> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const options = { ...given, aliasConfig: given.aliasConfig ?? (yield* ContractAliases) }
      const issues = new ValidationIssues()
      const paths = pathsOf(options, issues)
      if (issues.mistakes.length > 0) return yield* SettingsError.of("StatusRoutes", issues.mistakes)
      const provided = yield* Effect.context<never>()
      const waiting = Effect.provideContext(WaitingMessages.queues, provided)
      const limitResponse = yield* LargeResponses.make
      const routes: Array<readonly [path: HttpRouter.PathInput, handler: Handler]> = []
      const add = <I, S>(service: Context.Key<I, S>, path: HttpRouter.PathInput, handler: (service: S) => Handler) =>
        Option.map(Context.getOption(provided, service), (found) => routes.push([path, handler(found)]))
      add(EventStream, paths.events, (stream) => events(stream, options))
      add(HistoryReader, paths.history, (reader) => history(reader, limitResponse, options))
      add(StatusStore, paths.status, (store) => latest(store, waiting, options))
      for (const [path, handler] of routes) {
        yield* router.add("GET", path, ErrorResponses.catchDefects(handler))
        yield* ErrorResponses.refuseOtherMethods(router, path, ["GET"])
      }
    })
  )

type Handler = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext | Scope.Scope
>

const events = (stream: EventStream["Service"], { aliasConfig }: Options): Handler =>
  withTaskId(aliasConfig, (taskId) =>
    Effect.gen(function* () {
      const { headers, method, remoteAddress } = yield* HttpServerRequest.HttpServerRequest
      if (!acceptsEventStream(headers["accept"]))
        return refusal(406, "This path is an event stream: send Accept: text/event-stream.")
      const ofHeader = EventFrames.lastEventIdOf(headers["last-event-id"])
      // A page that opens a new EventSource cannot set the header. The browser sets it when it connects again.
      const lastEventId = ofHeader ?? ((yield* RequestParameters.query).get("last_event_id") || undefined)
      if (lastEventId !== undefined && lastEventId.length > EventFrames.maxLastEventIdLength) {
        const msg = `must have at most ${EventFrames.maxLastEventIdLength} characters`
        return invalidParameters([
          { loc: ofHeader === undefined ? ["query", "last_event_id"] : ["header", "Last-Event-ID"], msg }
        ])
      }
      if (method === "HEAD") return HttpServerResponse.empty({ status: 200, headers: eventStreamHeaders })
      const address = Option.getOrUndefined(remoteAddress)
      const opened = yield* stream.open(taskId, { lastEventId, address })
      return HttpServerResponse.stream(opened, { headers: eventStreamHeaders })
    }).pipe(
      Effect.catchTag("StreamRefused", ({ message, reason }) =>
        Effect.succeed(
          reason === "share"
            ? refusal(429, message, { "retry-after": String(reconnectSeconds) })
            : unavailable(message, reconnectSeconds)
        )
      )
    )
  )

const history = (
  reader: HistoryReader["Service"],
  limitResponse: LargeResponses.ResponseLimiter,
  options: Options
): Handler => {
  const { aliasConfig, historyOutputAdapter, requireStream = true } = options
  const toPublicJson = makePresenter({ aliasConfig, outputAdapter: historyOutputAdapter })
  const queryField = aliasConfig?.httpName("task_id") ?? "task_id"
  const bodyField = aliasConfig?.fieldName("task_id") ?? "task_id"
  return Effect.gen(function* () {
    const request = HistoryParameters.read(yield* RequestParameters.query, queryField, reader)
    if (!("source" in request)) return invalidParameters(request)
    const { source, taskId } = request
    if (source === "stream" && requireStream && reader.stream?.isStream === false) {
      return refusal(400, `The status queue ${reader.stream.queue} is not a stream: use source=store.`)
    }
    return yield* limitResponse(
      Effect.gen(function* () {
        const scanned =
          source === "stream" && reader.stream !== undefined
            ? yield* reader.stream.read(request)
            : yield* reader.store(taskId ?? "", request)
        const found = scanned.events.flatMap((json) => toPublicJson(json) ?? [])
        const taskMember = taskId === undefined ? "" : `,${JSON.stringify(bodyField)}:${JSON.stringify(taskId)}`
        const truncatedMember = scanned.truncated ? `,"truncated":true` : ""
        const offsets =
          offsetMember("next_offset", scanned.nextOffset) + offsetMember("oldest_offset", scanned.oldestOffset)
        return json(`{"count":${found.length},"events":[${found.join(",")}]${taskMember}${truncatedMember}${offsets}}`)
      })
    )
  }).pipe(
    Effect.catchTags({
      RedisError: () => Effect.succeed(storeUnavailable),
      NoPlace: (error) => Effect.succeed(LargeResponses.refusalOf(error)),
      HistoryBusy: ({ message }) => Effect.succeed(unavailable(message)),
      QueueInUse: ({ queue }) =>
        Effect.succeed(
          refusal(
            409,
            `The status queue ${queue} is not a stream, and it has a consumer. A scan would change the order in which the consumer receives messages. Use source=store.`
          )
        ),
      BrokerError: ({ message, reason }) =>
        Effect.succeed(
          reason === "not_found"
            ? refusal(404, `There is no status queue to read: ${message}`)
            : unavailable("The status stream cannot be read now: try again in a moment, or use source=store.")
        )
    })
  )
}

const offsetMember = (name: string, offset: number | undefined): string =>
  offset === undefined ? "" : `,"${name}":${offset}`

const latest = (
  store: StatusStore["Service"],
  waiting: typeof WaitingMessages.queues,
  { aliasConfig, latestOutputAdapter }: Options
): Handler => {
  const toPublicJson = makePresenter({ aliasConfig, outputAdapter: latestOutputAdapter })
  const field = aliasConfig?.fieldName("task_id") ?? "task_id"
  return withTaskId(aliasConfig, (taskId) =>
    Effect.matchEffect(store.latest(taskId), {
      onFailure: () => Effect.succeed(storeUnavailable),
      onSuccess: (stored) => {
        const event = stored && toPublicJson(stored.json)
        return event === undefined
          ? Effect.map(waiting, (waiting) =>
              refusal(
                404,
                `No status is stored for ${field} ${JSON.stringify(taskId)}. ${WaitingMessages.sentence(waiting)}`.trim()
              )
            )
          : Effect.succeed(json(`{${JSON.stringify(field)}:${JSON.stringify(taskId)},"event":${event}}`))
      }
    })
  )
}

const withTaskId = (aliasConfig: ContractAliasConfig | undefined, handler: (taskId: string) => Handler): Handler =>
  Effect.flatMap(RequestParameters.taskId(aliasConfig), (taskId) =>
    Result.isSuccess(taskId) ? handler(taskId.success) : Effect.succeed(invalidParameters(taskId.failure))
  )

/** Creates a response from JSON text. Stored events are JSON already, so they are not parsed. */
const json = (body: string) => HttpServerResponse.text(body, { contentType: "application/json" })

const storeUnavailable = unavailable("The status store cannot be read now: try again in a moment.")

const reconnectSeconds = 5

const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-store, must-revalidate",
  connection: "keep-alive",
  "x-accel-buffering": "no"
}

const acceptsEventStream = (header: string | undefined): boolean =>
  header === undefined ||
  header.split(",").some((range) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase())
    const refused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
    return !refused && /^(\*\/\*|text\/\*|text\/event-stream|)$/.test(type)
  })

/** Converts the paths to router paths. The router always names the parameter `task_id`, even if a path has an alias. */
const pathsOf = (options: Options, issues: ValidationIssues) => {
  const parameters = new Set(
    ["task_id", options.aliasConfig?.httpName("task_id") ?? "task_id"].map((name) => `{${name}}`)
  )
  const path = (field: string, template: string, ofTask: boolean): HttpRouter.PathInput => {
    const segments = template.split("/").slice(1)
    const named = segments.filter((segment) => parameters.has(segment))
    const literal = segments.every((segment) => parameters.has(segment) || /^[^?#\s{}:*]+$/.test(segment))
    if (!template.startsWith("/") || !literal || named.length !== (ofTask ? 1 : 0)) {
      const task = ofTask ? `, one of them ${[...parameters].join(" or ")}` : ""
      issues.addMistake(
        field,
        `must consist of segments that start with a slash${task}, without wildcards and other parameters`
      )
    }
    return `/${segments.map((segment) => (parameters.has(segment) ? ":task_id" : segment)).join("/")}`
  }
  return {
    events: path("eventsPath", options.eventsPath ?? "/events/{task_id}", true),
    history: path("historyPath", options.historyPath ?? "/history", false),
    status: path("statusPath", options.statusPath ?? "/status/{task_id}", true)
  }
}
