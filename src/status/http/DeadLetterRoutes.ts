import { ByteSize, Context, Effect, type Layer, Option, Result, type Scope } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as BodyMemory from "../../http/BodyMemory.ts"
import { isJsonObject, type JsonObject } from "../../messaging/envelope/Envelope.ts"
import * as ExactJson from "../../messaging/envelope/ExactJson.ts"
import { bodyOf } from "../../messaging/failure/DeadLetter.ts"
import { ContractAliasConfig, ContractAliases } from "../../messaging/topology/Aliases.ts"
import { Broker } from "../../services/Broker.ts"
import type { ConcurrencyLimitReached } from "../../services/ConcurrencyLimit.ts"
import type { RedisError } from "../../services/Redis.ts"
import * as DeadLetterQueues from "../dead-letters/DeadLetterQueues.ts"
import { DeadLetterStore, type UnknownCursor } from "../dead-letters/DeadLetterStore.ts"
import * as Diagnosis from "../dead-letters/Diagnosis.ts"
import * as QueuedLetters from "../dead-letters/QueuedLetters.ts"
import { type ReplayError, replay } from "../replay/Replay.ts"
import { type ReplayJob, type ReplayJobRefused, ReplayJobs } from "../replay/ReplayJobs.ts"
import { StatusStore } from "../store/StatusStore.ts"
import * as Parameters from "./DeadLetterParameters.ts"
import { type InvalidParameter, invalidParameters, refusal, unavailable } from "./ErrorBody.ts"
import * as ErrorResponses from "./ErrorResponses.ts"
import * as LargeResponses from "./LargeResponses.ts"
import * as RequestParameters from "./RequestParameters.ts"

type Path = `/${string}`

export interface Options {
  /** Dead-letter queues on the broker. If this is set (even to an empty list), the path `brokerQueuesPath` exists. */
  readonly brokerDlqQueueNames?: ReadonlyArray<string>
  /** The field names in bodies, paths and queries. Default: `ContractAliases`, which `StatusRuntime` sets. */
  readonly aliasConfig?: ContractAliasConfig
  /** The path of the indexed queues. `/index` and `/remove-replayed` are below it. Default: `/dlq/queues`. */
  readonly queuesPath?: Path
  /** The path that lists `brokerDlqQueueNames` and the indexed queues. Default: `/broker/dlq/queues`. */
  readonly brokerQueuesPath?: Path
  /** The path that lists dead letters. The routes of a single dead letter are below it. Default: `/dlq/messages`. */
  readonly messagesPath?: Path
  /** The path of the groups of similar dead letters. Default: `/dlq/groups`. */
  readonly groupsPath?: Path
  /** The path of the replay jobs. It exists only if `ReplayJobs` is provided. Default: `/dlq/replays`. */
  readonly replaysPath?: Path
}

type Requirements = DeadLetterStore | Broker

/** The maximum size of a request body. A list of 10,000 ids fits into it. */
const maxBody = ByteSize.mebibytes(1)

/**
 * The HTTP routes that list, inspect and replay dead letters. If `StatusStore` is provided, a dead letter includes the
 * statuses of its task. If `ReplayJobs` is provided, there are routes for replay jobs. `ReplayWorker.layer` must then
 * process these jobs.
 */
export const layer = (options: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter | Requirements> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      // The handlers do not receive the scope of the layer, because each request has its own scope.
      const services = Context.pick(DeadLetterStore, Broker)(yield* Effect.context<Requirements>())
      const statuses = yield* Effect.serviceOption(StatusStore)
      const replayJobs = yield* Effect.serviceOption(ReplayJobs)
      const limitResponse = yield* LargeResponses.make
      const bodyRoom = BodyMemory.make()
      const aliases = options.aliasConfig ?? (yield* ContractAliases) ?? new ContractAliasConfig()
      const messages = options.messagesPath ?? "/dlq/messages"
      const replays = options.replaysPath ?? "/dlq/replays"
      const allowed = new Map<Path, ReadonlyArray<"GET" | "POST">>()
      const add = (
        method: "GET" | "POST",
        path: Path,
        handler: Effect.Effect<
          HttpServerResponse.HttpServerResponse,
          RouteError,
          Requirements | HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext | Scope.Scope
        >
      ) => {
        allowed.set(path, [...(allowed.get(path) ?? []), method])
        return router.add(
          method,
          path,
          ErrorResponses.catchDefects(withErrorResponses(handler)).pipe(Effect.provideContext(services))
        )
      }

      const letters = yield* QueuedLetters.make
      const queuesPath = options.queuesPath ?? "/dlq/queues"
      const queueOptions = { aliases, room: bodyRoom, configured: options.brokerDlqQueueNames ?? [] }
      yield* add("GET", queuesPath, queues)
      yield* add("POST", `${queuesPath}/index`, onQueue(letters.index, queueOptions))
      yield* add("POST", `${queuesPath}/remove-replayed`, onQueue(letters.removeReplayed, queueOptions))
      yield* add("GET", messages, listDeadLetters(aliases))
      yield* add("GET", `${messages}/:dlq_id`, limitResponse(deadLetterDetail(aliases, statuses)))
      yield* add("POST", `${messages}/:dlq_id/replay`, replayOne)
      yield* add("GET", options.groupsPath ?? "/dlq/groups", groups)
      if (Option.isSome(replayJobs)) {
        const { value: jobs } = replayJobs
        yield* add("POST", replays, startJob(jobs, aliases, bodyRoom))
        yield* add("GET", replays, listJobs(jobs, aliases))
        yield* add("GET", `${replays}/:replay_id`, jobDetail(jobs, aliases))
        yield* add("POST", `${replays}/:replay_id/cancel`, cancelJob(jobs, aliases))
      }
      if (options.brokerDlqQueueNames !== undefined) {
        const path = options.brokerQueuesPath ?? "/broker/dlq/queues"
        yield* add("GET", path, brokerQueues(options.brokerDlqQueueNames))
      }
      for (const [path, methods] of allowed) yield* ErrorResponses.refuseOtherMethods(router, path, methods)
    })
  )

type RouteError =
  | QueuedLetters.QueueWalkFailed
  | RedisError
  | ConcurrencyLimitReached
  | BodyMemory.NoRoom
  | UnknownCursor
  | ReplayError
  | ReplayJobRefused
  | Invalid
  | Plain

interface Invalid {
  readonly _tag: "Invalid"
  readonly parameters: ReadonlyArray<InvalidParameter>
}

interface Plain {
  readonly _tag: "Plain"
  readonly status: number
  readonly detail: string
}

const failWith = (status: number, detail: string): Effect.Effect<never, Plain> =>
  Effect.fail({ _tag: "Plain", status, detail })

const orInvalid = <A>(read: Result.Result<A, ReadonlyArray<InvalidParameter>>): Effect.Effect<A, Invalid> =>
  Effect.mapError(Effect.fromResult(read), (parameters) => ({ _tag: "Invalid", parameters }))

const withErrorResponses = <R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, RouteError, R>) =>
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
      return error.whose === "caller"
        ? refusal(
            429,
            "Requests from this address already use their share of the memory for request bodies. Send fewer requests at once.",
            retrySoon
          )
        : unavailable("Other requests use all of the memory for request bodies. Try again in a moment.")
    case "QueueWalkFailed":
      if (error.reason === "unavailable") return unavailable(error.message)
      return refusal(error.reason === "busy" ? 409 : 404, error.message)
    case "ReplayJobRefused":
      return error.reason === "too_many"
        ? unavailable("Too many replay jobs are running: wait until one finishes, or cancel one.")
        : refusal(422, "This Idempotency-Key was used for another request: use a new key for a new request.")
    case "ReplayError":
      return replayRefusal(replayStatus[error.reason], error.message)
  }
}

const retrySoon = { "retry-after": "1" }

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
  no_queue: 409,
  refused: 503,
  unavailable: 503,
  unknown: 504
}

const parameter = (name: string) => Effect.map(HttpRouter.params, (params) => params[name] ?? "")

const ok = (body: unknown, status = 200) => HttpServerResponse.jsonUnsafe(body, { status })

const queues = Effect.gen(function* () {
  const { totals } = yield* DeadLetterStore
  return ok({ queues: yield* DeadLetterQueues.indexed, index: yield* totals })
})

const brokerQueues = (names: ReadonlyArray<string>) =>
  Effect.map(DeadLetterQueues.withNamed(names), (queues) => ok({ queues }))

const onQueue = <A>(
  walk: (
    queue: string,
    aliases: ContractAliasConfig
  ) => Effect.Effect<A, QueuedLetters.QueueWalkFailed | RedisError, DeadLetterStore | Broker>,
  given: {
    readonly aliases: ContractAliasConfig
    readonly room: BodyMemory.BodyMemory["Service"]
    readonly configured: ReadonlyArray<string>
  }
) =>
  Effect.gen(function* () {
    const body = yield* given.room.withReservation(Number(maxQueueBody))(bodyText(maxQueueBody))
    const queue = yield* orInvalid(Parameters.queueName(parseOrUndefined(body)))
    // Only dead-letter queues may be read, because reading a queue keeps its messages away from consumers.
    const isDeadLetterQueue =
      queue.endsWith(defaultSuffix) ||
      given.configured.includes(queue) ||
      (yield* (yield* DeadLetterStore).queues).some(({ queue_name }) => queue_name === queue)
    if (!isDeadLetterQueue) {
      return yield* failWith(
        422,
        `${queue} is not known as a dead-letter queue: its name does not end with ${defaultSuffix}, it has no indexed records, and brokerDlqQueueNames does not list it. Correct the name, or add it to brokerDlqQueueNames.`
      )
    }
    return ok(yield* walk(queue, given.aliases))
  })

/** The default suffix of dead-letter queues. A retry policy may set another suffix. */
const defaultSuffix = ".dlq"

const maxQueueBody = ByteSize.kibibytes(4)

const listDeadLetters = Effect.fnUntraced(function* (aliases: ContractAliasConfig) {
  const store = yield* DeadLetterStore
  const given = yield* RequestParameters.query
  const filter = yield* orInvalid(Parameters.filter(given, aliases))
  const { items, next_cursor } = yield* store.list(filter, yield* orInvalid(Parameters.page(given)))
  return ok({ items: items.map((item) => withTaskAlias(aliases, { ...item })), next_cursor })
})

const deadLetterDetail = Effect.fnUntraced(function* (
  aliases: ContractAliasConfig,
  statuses: Option.Option<StatusStore["Service"]>
) {
  const dlqId = yield* parameter("dlq_id")
  const record = yield* (yield* DeadLetterStore).get(dlqId)
  if (record === undefined)
    return yield* failWith(
      404,
      `There is no dead letter ${dlqId} in the index. If its message is still in the queue, POST /dlq/queues/index indexes it again.`
    )
  const { properties: _, raw_body_b64, ...shown } = record
  const { body, body_encoding } = bodyOf(Buffer.from(raw_body_b64, "base64"), ExactJson.parse)
  const events =
    Option.isSome(statuses) && record.task_id !== null
      ? (yield* statuses.value.history(record.task_id)).events.map(({ json }) =>
          withAliases(aliases, parseOrUndefined(json, ExactJson.parse))
        )
      : []
  return ok({
    ...withTaskAlias(aliases, { ...shown, body_encoding }),
    body: withAliases(aliases, body),
    latest_status: events.at(-1) ?? null,
    status_history: events.toReversed(),
    diagnosis: Diagnosis.of(record)
  })
})

const replayOne = Effect.gen(function* () {
  const force = yield* orInvalid(Parameters.flag(yield* RequestParameters.query, "force"))
  return ok(yield* replay(yield* parameter("dlq_id"), { force }))
})

const groups = Effect.gen(function* () {
  const store = yield* DeadLetterStore
  const { items, next_cursor } = yield* store.groups(yield* orInvalid(Parameters.page(yield* RequestParameters.query)))
  return ok({ groups: items, next_cursor })
})

type Jobs = ReplayJobs["Service"]

const startJob = (jobs: Jobs, aliases: ContractAliasConfig, { withReservation }: BodyMemory.BodyMemory["Service"]) =>
  withReservation(Number(maxBody))(createJob(jobs, aliases))

const createJob = Effect.fnUntraced(function* (jobs: Jobs, aliases: ContractAliasConfig) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const idempotencyKey = headers["idempotency-key"]
  if (idempotencyKey !== undefined && (idempotencyKey === "" || idempotencyKey.length > 255)) {
    return yield* orInvalid(Result.fail([{ loc: ["header", "Idempotency-Key"], msg: "must have 1 to 255 characters" }]))
  }
  const request = yield* orInvalid(
    Parameters.replayRequest(parseOrUndefined(yield* bodyText(maxBody)), jobs.maxIds, aliases)
  )
  const created = yield* jobs.create({ ...request, ...(idempotencyKey !== undefined && { idempotencyKey }) })
  return ok(jobBody(aliases, created.job), created.existing ? 200 : 202)
})

const bodyText = (maxBytes: typeof maxBody) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ text }) =>
    text.pipe(
      Effect.provideService(HttpServerRequest.MaxBodySize, maxBytes),
      Effect.catch(() =>
        failWith(413, `The request body cannot be read or has more than ${maxBytes} bytes: send a smaller one.`)
      )
    )
  )

const listJobs = Effect.fnUntraced(function* (jobs: Jobs, aliases: ContractAliasConfig) {
  const { items, next_cursor } = yield* jobs.list(yield* orInvalid(Parameters.page(yield* RequestParameters.query)))
  return ok({ replays: items.map((job) => jobBody(aliases, job)), next_cursor })
})

const jobDetail = Effect.fnUntraced(function* (jobs: Jobs, aliases: ContractAliasConfig) {
  const id = yield* parameter("replay_id")
  const found = yield* jobs.get(id)
  if (found === undefined) return yield* failWith(404, `There is no replay job ${id}.`)
  return ok({ ...jobBody(aliases, found), problems: yield* jobs.problems(id) })
})

const cancelJob = Effect.fnUntraced(function* (jobs: Jobs, aliases: ContractAliasConfig) {
  const id = yield* parameter("replay_id")
  const found = yield* jobs.cancel(id)
  if (found === undefined) return yield* failWith(404, `There is no replay job ${id}.`)
  if (found.state === "finished")
    return yield* failWith(409, `The replay job ${id} has finished already, so it cannot be cancelled.`)
  return ok(jobBody(aliases, found))
})

const jobBody = (aliases: ContractAliasConfig, job: ReplayJob) => ({
  ...job,
  filter: job.filter === null ? null : withTaskAlias(aliases, job.filter)
})

/** Renames `task_id` to its alias. A record or a filter has no other field with an alias. */
const withTaskAlias = (aliases: ContractAliasConfig, object: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name === "task_id" ? aliases.fieldName(name) : name, value])
  )

/** Renames members of a message body or a status to their aliases. */
const withAliases = (aliases: ContractAliasConfig, value: unknown): unknown =>
  isJsonObject(value) ? aliases.outbound(value) : value

/** Returns `undefined` for invalid JSON. */
const parseOrUndefined = (text: string, parse: (text: string) => unknown = JSON.parse): unknown => {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}
