import { Effect, Layer, Option } from "effect"
import * as ControlStore from "../messaging/control/ControlStore.ts"
import type { SettingsError } from "../messaging/envelope/Errors.ts"
import type { ObservationSink } from "../messaging/observe/ObservationSink.ts"
import { BrokerClient } from "../messaging/publish/BrokerClient.ts"
import { type ContractAliasConfig, ContractAliases } from "../messaging/topology/Aliases.ts"
import type { Topology } from "../messaging/topology/Topology.ts"
import type { Broker, Fields } from "../services/Broker.ts"
import { Database } from "../services/Database.ts"
import type { Redis } from "../services/Redis.ts"
import * as Cancellations from "../status/cancellations/Cancellations.ts"
import * as CancellationWorker from "../status/cancellations/CancellationWorker.ts"
import * as ArchiveSweeper from "../status/dead-letters/ArchiveSweeper.ts"
import type { DeadLetterStore } from "../status/dead-letters/DeadLetterStore.ts"
import * as RedisDLQStore from "../status/dead-letters/RedisDLQStore.ts"
import * as History from "../status/history/History.ts"
import * as WaitingMessages from "../status/history/WaitingMessages.ts"
import * as StatusHub from "../status/hub/StatusHub.ts"
import * as PayloadCheck from "../status/payload/PayloadCheck.ts"
import * as QueueBoard from "../status/queues/QueueBoard.ts"
import * as TaskCancellation from "../status/queues/TaskCancellation.ts"
import * as TopologyMap from "../status/queues/TopologyMap.ts"
import * as ReplayJobs from "../status/replay/ReplayJobs.ts"
import * as ReplayOutcomes from "../status/replay/ReplayOutcomes.ts"
import * as ReplayWorker from "../status/replay/ReplayWorker.ts"
import * as RedisStatusStore from "../status/store/RedisStatusStore.ts"
import type { StatusStore } from "../status/store/StatusStore.ts"
import type { TerminalStatusSet } from "../status/store/TerminalStatusSet.ts"
import * as EventStream from "../status/stream/EventStream.ts"
import type { OutputAdapter } from "../status/stream/PublicEvent.ts"
import * as PostgresTaskIndex from "../status/tasks/PostgresTaskIndex.ts"
import * as RedisTaskIndex from "../status/tasks/RedisTaskIndex.ts"
import type { TaskIndex } from "../status/tasks/TaskIndex.ts"
import * as TaskIndexer from "../status/tasks/TaskIndexer.ts"
import * as ExecutionGraphService from "./ExecutionGraphService.ts"
import type { ObservationStore } from "./observations/ObservationStore.ts"
import * as RedisObservationStore from "./observations/RedisObservationStore.ts"
import { TaskQueues } from "./TaskQueues.ts"

/**
 * Options of the status runtime. They are the parameters of `create_lifespan` in the specification, except `redis_url`.
 * The provided `Redis` service replaces that parameter. Additional options are grouped by layer: `store`, `hub`,
 * `eventStreams`, `history`, `dlqStore`, `replayJobs`, `replayWorker` and `graphs`.
 */
export interface Options {
  /** The topology of the workers. Its `status_max_event_bytes` limits the size of a status. */
  readonly topology: Topology
  /** The topologies of other workers for the same tasks. Explanations also look for messages in their queues. */
  readonly otherTopologies?: ReadonlyArray<Topology>
  /** Aliases of members and parameters for the hub, histories, event streams and routers. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /** The prefix of the Redis keys of the status store. Default: `svc`. */
  readonly storePrefix?: string
  /** The time to live after the last status of a task, in seconds. `null` or 0: unlimited. Default: 86,400. */
  readonly storeTtlSeconds?: number | null
  /** The number of statuses that are kept per task. Default: 50. */
  readonly storeHistoryMaxlen?: number
  readonly store?: Pick<RedisStatusStore.StatusStoreParameters, "dedup_maxlen" | "children_maxlen">
  /** The number of statuses that the hub stores concurrently. Default: 200. */
  readonly hubPrefetch?: number
  /** The arguments of the hub's subscription: see `StatusHub`. Default: none. */
  readonly hubConsumeArguments?: Fields
  /** The members of `meta` that the hub does not store and histories do not show. Default: `["auth_token"]`. */
  readonly hubSanitizeMetaKeys?: ReadonlyArray<string>
  readonly hub?: Pick<StatusHub.Options, "stopWithin" | "idleRetrySeconds">
  /** The statuses that end a task. Default: `completed` and `failed`. */
  readonly sseTerminalStatuses?: TerminalStatusSet
  readonly sseOutputAdapter?: OutputAdapter
  /** The maximum number of open event streams. Default: 10,000. */
  readonly sseMaxOpenStreams?: number
  /** The maximum number of open event streams per client address. Default: a quarter of `sseMaxOpenStreams`. */
  readonly sseMaxOpenStreamsPerAddress?: number
  readonly eventStreams?: Pick<
    EventStream.Options,
    "keepaliveIntervalSeconds" | "maxWaitingEvents" | "maxWaitingSize" | "stalledSeconds"
  >
  readonly history?: Omit<History.Options, "topology" | "aliasConfig" | "sanitizeMetaKeys">
  /** The prefix of the dead-letter store, the same as in workers. `null`: no index and no replays. Default: `svc`. */
  readonly dlqStorePrefix?: string | null | undefined
  /** The time to live of a dead letter in seconds. `null` or 0: until the store is full. Default: `null`. */
  readonly dlqStoreTtlSeconds?: number | null
  readonly dlqStore?: Pick<RedisDLQStore.Options, "max_records" | "max_bytes" | "replay_lease_seconds">
  readonly replayJobs?: Omit<ReplayJobs.Options, "prefix">
  readonly replayWorker?: ReplayWorker.Options
  readonly replayOutcomes?: Omit<ReplayOutcomes.Options, "terminalStatuses">
  readonly archiveSweeper?: ArchiveSweeper.Options
  /** The observation store's prefix, the same as in workers. `null`: partial graphs. Default: `svc-observations`. */
  readonly observationStorePrefix?: string | null | undefined
  /** The time to live after the last observation of a task, in seconds. Default: `storeTtlSeconds`. */
  readonly observationStoreTtlSeconds?: number | null
  /** The number of observations that are kept per task. Default: 500. */
  readonly observationHistoryMaxlen?: number
  /** Which members of `meta` are attributes of tasks, and how much the index keeps and looks at. */
  readonly taskIndex?: Pick<TaskIndexer.Options, "attributes" | "backfillPause"> &
    Omit<RedisTaskIndex.Options, "prefix">
  readonly queueBoard?: Omit<QueueBoard.Options, "queues">
  readonly cancellation?: Omit<TaskCancellation.Options, "terminalStatuses">
  readonly cancellations?: Omit<Cancellations.Options, "prefix">
  readonly cancellationWorker?: CancellationWorker.Options
  readonly graphs?: Pick<ExecutionGraphService.Options, "childrenLimit" | "deadLetterLimit" | "evidenceLimit">
  /** Receives the observations of the hub and of event streams. Default: none. */
  readonly observationSink?: ObservationSink
}

interface WithDeadLetters extends Options {
  readonly dlqStorePrefix?: string | undefined
}

interface WithObservations extends Options {
  readonly observationStorePrefix?: string | undefined
}

/** The stores that the options enable. */
export type Stores<O extends Options> =
  | StatusStore
  | (O extends WithDeadLetters ? DeadLetterStore : never)
  | (O extends WithObservations ? ObservationStore : never)

/** The services that store and serve statuses and replay dead letters. */
export type Statuses<O extends Options> =
  | StatusHub.HubProgress
  | EventStream.EventStream
  | History.HistoryReader
  | BrokerClient
  | WaitingMessages.WaitingMessages
  | QueueBoard.QueueBoard
  | TaskCancellation.TaskCancellation
  | Cancellations.Cancellations
  | TopologyMap.TopologyMap
  | TaskIndex
  | TaskIndexer.TaskIndexer
  | PayloadCheck.PayloadCheck
  | (O extends WithDeadLetters
      ? ReplayJobs.ReplayJobs | ReplayOutcomes.ReplayOutcomes | ArchiveSweeper.ArchiveSweeper
      : never)

/** Creates the stores in Redis, which workers and routers share. */
export function stores<const O extends Options>(options: O): Layer.Layer<Stores<O>, SettingsError, Redis>
export function stores(options: Options): Layer.Layer<StatusStore, SettingsError, Redis> {
  const { dlqStorePrefix, observationStorePrefix, storeTtlSeconds } = options
  const statusStore = RedisStatusStore.layer({
    ...options.store,
    prefix: options.storePrefix,
    ttl_seconds: storeTtlSeconds,
    history_maxlen: options.storeHistoryMaxlen
  })
  const deadLetters =
    dlqStorePrefix === null
      ? Layer.empty
      : RedisDLQStore.layer({
          ...options.dlqStore,
          prefix: dlqStorePrefix,
          ttl_seconds: options.dlqStoreTtlSeconds
        })
  const observations =
    observationStorePrefix === null
      ? Layer.empty
      : RedisObservationStore.layer({
          prefix: observationStorePrefix,
          ttl_seconds:
            options.observationStoreTtlSeconds === undefined ? storeTtlSeconds : options.observationStoreTtlSeconds,
          history_maxlen: options.observationHistoryMaxlen
        })
  return Layer.mergeAll(statusStore, deadLetters, observations)
}

/** Runs the status hub and the workers of jobs, and provides event streams and histories. */
export function statuses<const O extends Options>(
  options: O
): Layer.Layer<Statuses<O>, SettingsError, Broker | Redis | Exclude<Stores<O>, ObservationStore>>
export function statuses(
  options: Options
): Layer.Layer<
  | StatusHub.HubProgress
  | EventStream.EventStream
  | History.HistoryReader
  | BrokerClient
  | WaitingMessages.WaitingMessages
  | QueueBoard.QueueBoard
  | TaskCancellation.TaskCancellation
  | Cancellations.Cancellations
  | TopologyMap.TopologyMap
  | TaskIndex
  | TaskIndexer.TaskIndexer
  | PayloadCheck.PayloadCheck,
  SettingsError,
  Broker | Redis | StatusStore | DeadLetterStore
> {
  const { aliasConfig, dlqStorePrefix, hubSanitizeMetaKeys: sanitizeMetaKeys, observationSink, topology } = options
  const hub = Layer.unwrap(
    Effect.map(TaskIndexer.TaskIndexer, ({ offer }) =>
      StatusHub.layer({
        ...options.hub,
        prefix: options.storePrefix,
        prefetch: options.hubPrefetch,
        consumeArguments: options.hubConsumeArguments,
        sanitizeMetaKeys,
        observationSink,
        onStored: offer
      })
    )
  )
  const stream = EventStream.layer({
    ...options.eventStreams,
    terminalStatuses: options.sseTerminalStatuses,
    outputAdapter: options.sseOutputAdapter,
    ...(options.sseMaxOpenStreams !== undefined && { maxOpenStreams: options.sseMaxOpenStreams }),
    ...(options.sseMaxOpenStreamsPerAddress !== undefined && {
      maxOpenStreamsPerAddress: options.sseMaxOpenStreamsPerAddress
    }),
    observationSink
  })
  const jobs =
    dlqStorePrefix === null
      ? Layer.empty
      : ReplayWorker.layer(options.replayWorker).pipe(
          Layer.provideMerge(ReplayJobs.layer({ ...options.replayJobs, prefix: dlqStorePrefix })),
          Layer.merge(ArchiveSweeper.layer(options.archiveSweeper)),
          Layer.merge(
            ReplayOutcomes.layer({ ...options.replayOutcomes, terminalStatuses: options.sseTerminalStatuses })
          )
        )
  const reader = History.layer({ ...options.history, topology, sanitizeMetaKeys })
  return Layer.mergeAll(stream, reader, hub, jobs, waitingMessages(options), operations(options)).pipe(
    Layer.provideMerge(taskIndex(options)),
    Layer.provideMerge(BrokerClient.layer({ topology, aliasConfig })),
    Layer.provideMerge(Layer.succeed(ContractAliases, aliasConfig))
  )
}

/** Provides execution graphs and explanations. */
export const graphs = (options: Options) => {
  const { aliasConfig, otherTopologies, sseTerminalStatuses, topology } = options
  return ExecutionGraphService.layer({
    ...options.graphs,
    topology,
    otherTopologies,
    terminalStatuses: sseTerminalStatuses
  }).pipe(Layer.provide(waitingMessages(options)), Layer.provideMerge(Layer.succeed(ContractAliases, aliasConfig)))
}

/** Keeps the index in PostgreSQL where the process has it, else in Redis. */
const taskIndex = ({
  hubSanitizeMetaKeys: sanitizeMetaKeys,
  sseTerminalStatuses,
  storePrefix,
  taskIndex: given = {}
}: Options) => {
  const { attributes, backfillPause, ...bounds } = given
  const store = Layer.unwrap(
    Effect.map(Effect.serviceOption(Database), (database) =>
      Option.isSome(database)
        ? Layer.provide(PostgresTaskIndex.layer(bounds), Layer.succeed(Database, database.value))
        : RedisTaskIndex.layer({ ...bounds, prefix: storePrefix })
    )
  )
  return TaskIndexer.layer({
    attributes,
    ...(backfillPause !== undefined && { backfillPause }),
    terminalStatuses: sseTerminalStatuses,
    storePrefix,
    sanitizeMetaKeys
  }).pipe(Layer.provideMerge(store))
}

/**
 * Provides the board of queues, the map of the topologies, the cancellation of tasks, of one and of many, and the check of
 * payloads.
 */
const operations = ({
  cancellation,
  cancellations,
  cancellationWorker,
  otherTopologies = [],
  queueBoard,
  sseTerminalStatuses,
  storePrefix,
  topology
}: Options) =>
  Layer.mergeAll(
    QueueBoard.layer({ ...queueBoard, queues: new TaskQueues([topology, ...otherTopologies]).all }),
    TopologyMap.layer([topology, ...otherTopologies]),
    PayloadCheck.layer,
    CancellationWorker.layer(cancellationWorker).pipe(
      Layer.provideMerge(Cancellations.layer({ ...cancellations, prefix: storePrefix })),
      Layer.provideMerge(TaskCancellation.layer({ ...cancellation, terminalStatuses: sseTerminalStatuses }))
    )
  ).pipe(Layer.provide(ControlStore.layer({ prefix: storePrefix })))

const waitingMessages = ({ otherTopologies = [], topology }: Options) =>
  WaitingMessages.layer(new TaskQueues([topology, ...otherTopologies]).all)

/**
 * Runs the status hub and the workers of jobs. Provides the services of the routers: `EventStream`,
 * `HistoryReader`, `StatusStore`, `DeadLetterStore`, `ReplayJobs`, `ObservationStore`, `ExecutionGraphService` and
 * `BrokerClient`. Fails with a `SettingsError` if an option is invalid. The specification calls this layer
 * `create_lifespan`.
 */
export function layer<const O extends Options>(
  options: O
): Layer.Layer<Stores<O> | Statuses<O> | ExecutionGraphService.ExecutionGraphService, SettingsError, Broker | Redis>
export function layer(
  options: Options
): Layer.Layer<StatusStore | ExecutionGraphService.ExecutionGraphService, SettingsError, Broker | Redis> {
  return Layer.merge(statuses(options), graphs(options)).pipe(Layer.provideMerge(stores(options)))
}
