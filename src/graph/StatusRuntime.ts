import { Layer } from "effect"
import type { SettingsError } from "../messaging/envelope/Errors.ts"
import type { ObservationSink } from "../messaging/observe/ObservationSink.ts"
import { BrokerClient } from "../messaging/publish/BrokerClient.ts"
import { type ContractAliasConfig, ContractAliases } from "../messaging/topology/Aliases.ts"
import type { Topology } from "../messaging/topology/Topology.ts"
import type { Broker, Fields } from "../services/Broker.ts"
import type { Redis } from "../services/Redis.ts"
import type { DeadLetterStore } from "../status/dead-letters/DeadLetterStore.ts"
import * as RedisDLQStore from "../status/dead-letters/RedisDLQStore.ts"
import * as History from "../status/history/History.ts"
import * as WaitingMessages from "../status/history/WaitingMessages.ts"
import * as StatusHub from "../status/hub/StatusHub.ts"
import * as ReplayJobs from "../status/replay/ReplayJobs.ts"
import * as ReplayWorker from "../status/replay/ReplayWorker.ts"
import * as RedisStatusStore from "../status/store/RedisStatusStore.ts"
import type { StatusStore } from "../status/store/StatusStore.ts"
import type { TerminalStatusSet } from "../status/store/TerminalStatusSet.ts"
import * as EventStream from "../status/stream/EventStream.ts"
import type { OutputAdapter } from "../status/stream/PublicEvent.ts"
import * as ExecutionGraphService from "./ExecutionGraphService.ts"
import type { ObservationStore } from "./ObservationStore.ts"
import * as RedisObservationStore from "./RedisObservationStore.ts"
import { TaskQueues } from "./TaskQueues.ts"

/**
 * The parameters of the specification's `create_lifespan`; `redis_url` is the `Redis` that is provided. What has no
 * parameter there is among the options of its layer: `store`, `hub`, `eventStreams`, `history`, `dlqStore`, `replayJobs`,
 * `replayWorker` and `graphs`.
 */
export interface Options {
  /** It also says how large a status may be: `status_max_event_bytes`. */
  readonly topology: Topology
  /** Of other workers that the same tasks come to: what waits for those is looked for in their queues. */
  readonly otherTopologies?: ReadonlyArray<Topology>
  /** For hub, histories, event streams and routers. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /** Default: `svc`. */
  readonly storePrefix?: string
  /** Of statuses, at most ten years. `null` or 0: for ever. Default: 86400. */
  readonly storeTtlSeconds?: number | null
  /** Default: 50. */
  readonly storeHistoryMaxlen?: number
  readonly store?: Pick<RedisStatusStore.StatusStoreParameters, "dedup_maxlen" | "children_maxlen">
  /** Default: 200. */
  readonly hubPrefetch?: number
  /** Of the hub's subscription: see `StatusHub`. Default: none. */
  readonly hubConsumeArguments?: Fields
  /** Of the `meta` of events, neither stored nor shown from the stream. Default: `["auth_token"]`. */
  readonly hubSanitizeMetaKeys?: ReadonlyArray<string>
  readonly hub?: Pick<StatusHub.Options, "stopWithin" | "idleRetrySeconds">
  /** Default: `completed` and `failed`. */
  readonly sseTerminalStatuses?: TerminalStatusSet
  readonly sseOutputAdapter?: OutputAdapter
  /** Event streams that are open at once. Default: 10,000. */
  readonly sseMaxOpenStreams?: number
  /** Of those, what clients of one address may have. Default: a quarter. */
  readonly sseMaxOpenStreamsPerAddress?: number
  readonly eventStreams?: Pick<
    EventStream.Options,
    "keepaliveIntervalSeconds" | "maxWaitingEvents" | "maxWaitingSize" | "stalledSeconds"
  >
  readonly history?: Omit<History.Options, "topology" | "aliasConfig" | "sanitizeMetaKeys">
  /** That of the workers' store. `null`: no index of dead letters, and no replays. Default: `svc`. */
  readonly dlqStorePrefix?: string | null | undefined
  /** `null` or 0: as long as there is room. Default: `null`. */
  readonly dlqStoreTtlSeconds?: number | null
  readonly dlqStore?: Pick<RedisDLQStore.Options, "max_records" | "max_bytes" | "replay_lease_seconds">
  readonly replayJobs?: Omit<ReplayJobs.Options, "prefix">
  readonly replayWorker?: ReplayWorker.Options
  /** That of the workers' sink. `null`: no observations are kept, and graphs are partial. Default: `svc-observations`. */
  readonly observationStorePrefix?: string | null | undefined
  /** Default: that of the statuses. */
  readonly observationStoreTtlSeconds?: number | null
  /** Default: 500. */
  readonly observationHistoryMaxlen?: number
  readonly graphs?: Pick<ExecutionGraphService.Options, "childrenLimit" | "deadLetterLimit" | "evidenceLimit">
  /** Of hub and event streams. */
  readonly observationSink?: ObservationSink
}

/** Where the index of dead letters is not given up. */
interface WithDeadLetters extends Options {
  readonly dlqStorePrefix?: string | undefined
}

/** Where the store of observations is not given up. */
interface WithObservations extends Options {
  readonly observationStorePrefix?: string | undefined
}

/** The stores that options ask for. */
export type Stores<O extends Options> =
  | StatusStore
  | (O extends WithDeadLetters ? DeadLetterStore : never)
  | (O extends WithObservations ? ObservationStore : never)

/** What is made of the stores for clients. */
export type Statuses<O extends Options> =
  | StatusHub.HubProgress
  | EventStream.EventStream
  | History.HistoryReader
  | BrokerClient
  | WaitingMessages.WaitingMessages
  | (O extends WithDeadLetters ? ReplayJobs.ReplayJobs : never)

/** What workers and routers share in Redis. */
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

/** From the broker to clients: the hub, event streams and histories, and who works on replay jobs. */
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
  | WaitingMessages.WaitingMessages,
  SettingsError,
  Broker | Redis | StatusStore | DeadLetterStore
> {
  const { aliasConfig, dlqStorePrefix, hubSanitizeMetaKeys: sanitizeMetaKeys, observationSink, topology } = options
  const hub = StatusHub.layer({
    ...options.hub,
    prefix: options.storePrefix,
    prefetch: options.hubPrefetch,
    consumeArguments: options.hubConsumeArguments,
    sanitizeMetaKeys,
    observationSink
  })
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
          Layer.provideMerge(ReplayJobs.layer({ ...options.replayJobs, prefix: dlqStorePrefix }))
        )
  const reader = History.layer({ ...options.history, topology, sanitizeMetaKeys })
  return Layer.mergeAll(stream, reader, hub, jobs, waitingMessages(options)).pipe(
    Layer.provideMerge(BrokerClient.layer({ topology, aliasConfig })),
    Layer.provideMerge(Layer.succeed(ContractAliases, aliasConfig))
  )
}

/** Graphs and explanations of what is stored. */
export const graphs = (options: Options) => {
  const { aliasConfig, otherTopologies, sseTerminalStatuses, topology } = options
  return ExecutionGraphService.layer({
    ...options.graphs,
    topology,
    otherTopologies,
    terminalStatuses: sseTerminalStatuses
  }).pipe(Layer.provide(waitingMessages(options)), Layer.provideMerge(Layer.succeed(ContractAliases, aliasConfig)))
}

const waitingMessages = ({ otherTopologies = [], topology }: Options) =>
  WaitingMessages.layer(new TaskQueues([topology, ...otherTopologies]).all)

/**
 * Everything between workers and whoever asks about their tasks: the hub and the worker of replay jobs at work, and what
 * routers are made of: `EventStream`, `HistoryReader`, `StatusStore`, `DeadLetterStore`, `ReplayJobs`, `ObservationStore`,
 * `ExecutionGraphService` and the `BrokerClient`. Wrong options fail the layer with a `SettingsError`.
 */
export function layer<const O extends Options>(
  options: O
): Layer.Layer<Stores<O> | Statuses<O> | ExecutionGraphService.ExecutionGraphService, SettingsError, Broker | Redis>
export function layer(
  options: Options
): Layer.Layer<StatusStore | ExecutionGraphService.ExecutionGraphService, SettingsError, Broker | Redis> {
  return Layer.merge(statuses(options), graphs(options)).pipe(Layer.provideMerge(stores(options)))
}
