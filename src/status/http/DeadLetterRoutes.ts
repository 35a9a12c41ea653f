import { ByteSize, Context, Effect, type Layer, Option, type Scope } from "effect"
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import * as BodyMemory from "../../http/BodyMemory.ts"
import { isJsonObject } from "../../messaging/envelope/Envelope.ts"
import * as ExactJson from "../../messaging/envelope/ExactJson.ts"
import { bodyOf, type DeadLetterRecord } from "../../messaging/failure/DeadLetter.ts"
import { ContractAliasConfig, ContractAliases } from "../../messaging/topology/Aliases.ts"
import { Broker } from "../../services/Broker.ts"
import type { RedisError } from "../../services/Redis.ts"
import { ArchiveSweeper } from "../dead-letters/ArchiveSweeper.ts"
import * as DeadLetterQueues from "../dead-letters/DeadLetterQueues.ts"
import { DeadLetterStore } from "../dead-letters/DeadLetterStore.ts"
import * as Diagnosis from "../dead-letters/Diagnosis.ts"
import * as QueuedLetters from "../dead-letters/QueuedLetters.ts"
import { PayloadCheck } from "../payload/PayloadCheck.ts"
import { replay } from "../replay/Replay.ts"
import { ReplayJobs } from "../replay/ReplayJobs.ts"
import { ReplayOutcomes } from "../replay/ReplayOutcomes.ts"
import { StatusStore } from "../store/StatusStore.ts"
import * as Parameters from "./DeadLetterParameters.ts"
import {
  bodyText,
  failWith,
  ok,
  orInvalid,
  parameter,
  parseOrUndefined,
  type RouteError,
  withErrorResponses,
  withTaskAlias
} from "./DeadLetterResponses.ts"
import * as ErrorResponses from "./ErrorResponses.ts"
import * as LargeResponses from "./LargeResponses.ts"
import * as RepairHandlers from "./RepairHandlers.ts"
import * as ReplayJobHandlers from "./ReplayJobHandlers.ts"
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

/**
 * The HTTP routes that list, inspect and replay dead letters. If `StatusStore` is provided, a dead letter includes the
 * statuses of its task. If `ReplayJobs` is provided, there are routes for replay jobs. `ReplayWorker.layer` must then
 * process these jobs. If `ArchiveSweeper` is provided, dead letters can be archived. If `ReplayOutcomes` is provided, a
 * dead letter shows what became of its replay. If `PayloadCheck` is provided, payloads are compared with the schemas of
 * their handlers.
 */
export const layer = (options: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter | Requirements> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      // The handlers do not receive the scope of the layer, because each request has its own scope.
      const services = Context.pick(DeadLetterStore, Broker)(yield* Effect.context<Requirements>())
      const statuses = yield* Effect.serviceOption(StatusStore)
      const replayJobs = yield* Effect.serviceOption(ReplayJobs)
      const sweeper = yield* Effect.serviceOption(ArchiveSweeper)
      const outcomes = yield* Effect.serviceOption(ReplayOutcomes)
      const payloads = yield* Effect.serviceOption(PayloadCheck)
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
      yield* add(
        "GET",
        `${messages}/:dlq_id`,
        limitResponse(deadLetterDetail(aliases, { statuses, outcomes, payloads }))
      )
      yield* add("POST", `${messages}/:dlq_id/replay`, replayOne)
      yield* add("POST", `${messages}/:dlq_id/edits`, RepairHandlers.edit(aliases, bodyRoom))
      yield* add("POST", `${messages}/:dlq_id/edits/check`, RepairHandlers.checkEdit(aliases, bodyRoom, payloads))
      if (Option.isSome(sweeper)) {
        yield* add("POST", `${messages}/:dlq_id/archive`, RepairHandlers.archive(sweeper.value))
        yield* add("POST", `${messages}/:dlq_id/unarchive`, RepairHandlers.unarchive)
        yield* add("POST", `${messages}/archive`, RepairHandlers.archiveMany(sweeper.value, aliases, bodyRoom))
        yield* add("POST", `${messages}/unarchive`, RepairHandlers.unarchiveMany(bodyRoom))
      }
      yield* add("GET", options.groupsPath ?? "/dlq/groups", groups)
      if (Option.isSome(replayJobs)) {
        const { value: jobs } = replayJobs
        yield* add("POST", replays, ReplayJobHandlers.start(jobs, aliases, bodyRoom))
        yield* add("POST", `${replays}/check`, ReplayJobHandlers.check(jobs, aliases, bodyRoom))
        yield* add("GET", replays, ReplayJobHandlers.list(jobs, aliases))
        yield* add("GET", `${replays}/:replay_id`, ReplayJobHandlers.detail(jobs, aliases))
        yield* add("POST", `${replays}/:replay_id/pause`, ReplayJobHandlers.pause(jobs, aliases))
        yield* add("POST", `${replays}/:replay_id/resume`, ReplayJobHandlers.resume(jobs, aliases))
        yield* add("POST", `${replays}/:replay_id/cancel`, ReplayJobHandlers.cancel(jobs, aliases))
      }
      if (options.brokerDlqQueueNames !== undefined) {
        const path = options.brokerQueuesPath ?? "/broker/dlq/queues"
        yield* add("GET", path, brokerQueues(options.brokerDlqQueueNames))
      }
      for (const [path, methods] of allowed) yield* ErrorResponses.refuseOtherMethods(router, path, methods)
    })
  )

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

/** Members of a dead letter that are not stored in its record. */
interface Known {
  readonly statuses: Option.Option<StatusStore["Service"]>
  readonly outcomes: Option.Option<ReplayOutcomes["Service"]>
  readonly payloads: Option.Option<PayloadCheck["Service"]>
}

const deadLetterDetail = Effect.fnUntraced(function* (
  aliases: ContractAliasConfig,
  { outcomes, payloads, statuses }: Known
) {
  const dlqId = yield* parameter("dlq_id")
  const store = yield* DeadLetterStore
  const current = Effect.fnUntraced(function* (id: string) {
    const record = yield* store.get(id)
    if (Option.isNone(outcomes) || record?.replay_outcome?.outcome !== "published") return record
    yield* outcomes.value.look(id)
    return yield* store.get(id)
  })
  const record = yield* current(dlqId)
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
    ...(record.replaced_by && { replacement: replacementOf(yield* current(record.replaced_by)) }),
    payload_fit: yield* RepairHandlers.fitOf(payloads, { record, aliases, root: "payload" }),
    diagnosis: Diagnosis.of(record)
  })
})

/** The outcome of the edited message. `null` if its record is not in the index any more. */
const replacementOf = (record: DeadLetterRecord | undefined) =>
  record === undefined
    ? null
    : {
        dlq_id: record.dlq_id,
        state: record.state,
        replayed_at: record.replayed_at,
        replay_outcome: record.replay_outcome ?? null,
        replaced_by: record.replaced_by ?? null
      }

const replayOne = Effect.gen(function* () {
  const force = yield* orInvalid(Parameters.flag(yield* RequestParameters.query, "force"))
  return ok(yield* replay(yield* parameter("dlq_id"), { force }))
})

const groups = Effect.gen(function* () {
  const store = yield* DeadLetterStore
  const { items, next_cursor } = yield* store.groups(yield* orInvalid(Parameters.page(yield* RequestParameters.query)))
  return ok({ groups: items, next_cursor })
})

/** Renames members of a message body or a status to their aliases. */
const withAliases = (aliases: ContractAliasConfig, value: unknown): unknown =>
  isJsonObject(value) ? aliases.outbound(value) : value
