import { Layer } from "effect"
import type { ContractAliasConfig } from "../messaging/Aliases.ts"
import { BrokerClient } from "../messaging/BrokerClient.ts"
import type { ObservationSink } from "../messaging/ObservationSink.ts"
import type { Topology } from "../messaging/Topology.ts"
import type { Fields } from "../services/Broker.ts"
import * as EventStream from "../status/EventStream.ts"
import * as History from "../status/History.ts"
import type { OutputAdapter } from "../status/PublicEvent.ts"
import * as RedisDLQStore from "../status/RedisDLQStore.ts"
import * as RedisStatusStore from "../status/RedisStatusStore.ts"
import * as ReplayJobs from "../status/ReplayJobs.ts"
import * as ReplayWorker from "../status/ReplayWorker.ts"
import * as StatusHub from "../status/StatusHub.ts"
import type { TerminalStatusSet } from "../status/TerminalStatusSet.ts"
import * as WaitingMessages from "../status/WaitingMessages.ts"
import * as ExecutionGraphService from "./ExecutionGraphService.ts"
import { Inboxes } from "./Inboxes.ts"
import * as RedisObservationStore from "./RedisObservationStore.ts"

/** The parameters of the specification's `create_lifespan`; `redis_url` is the `Redis` that is provided. */
export interface Options {
  readonly topology: Topology
  /** Of other workers that the same tasks come to: what waits for those is looked for in their queues. */
  readonly otherTopologies?: ReadonlyArray<Topology>
  /** Routers are given it too. */
  readonly aliasConfig?: ContractAliasConfig
  /** Default: `svc`. */
  readonly storePrefix?: string
  /** Of statuses, at most ten years. `null` or 0: for ever. Default: 86400. */
  readonly storeTtlSeconds?: number | null
  /** Default: 50. */
  readonly storeHistoryMaxlen?: number
  /** Default: 200. */
  readonly hubPrefetch?: number
  /** Of the hub's subscription: see `StatusHub`. Default: none. */
  readonly hubConsumeArguments?: Fields
  /** Of the `meta` of events, neither stored nor shown from the stream. Default: `["auth_token"]`. */
  readonly hubSanitizeMetaKeys?: ReadonlyArray<string>
  /** Default: `completed` and `failed`. */
  readonly sseTerminalStatuses?: TerminalStatusSet
  readonly sseOutputAdapter?: OutputAdapter
  /** Event streams that are open at once. Default: 10,000. */
  readonly sseMaxOpenStreams?: number
  /** Of those, what clients of one address may have. Default: a quarter. */
  readonly sseMaxOpenStreamsPerAddress?: number
  /** That of the workers' store. Default: `svc`. */
  readonly dlqStorePrefix?: string
  /** `null` or 0: as long as there is room. Default: `null`. */
  readonly dlqStoreTtlSeconds?: number | null
  /** That of the workers' sink. Default: `svc-observations`. */
  readonly observationStorePrefix?: string
  /** Default: that of the statuses. */
  readonly observationStoreTtlSeconds?: number | null
  /** Default: 500. */
  readonly observationHistoryMaxlen?: number
  /** Of hub and event streams. */
  readonly observationSink?: ObservationSink
}

/** What workers and routers share in Redis. */
export const stores = ({ storeTtlSeconds, ...options }: Options) =>
  Layer.mergeAll(
    RedisStatusStore.layer({
      prefix: options.storePrefix ?? "svc",
      ttl_seconds: storeTtlSeconds,
      history_maxlen: options.storeHistoryMaxlen
    }),
    RedisDLQStore.layer({ prefix: options.dlqStorePrefix, ttl_seconds: options.dlqStoreTtlSeconds }),
    RedisObservationStore.layer({
      prefix: options.observationStorePrefix,
      ttl_seconds:
        options.observationStoreTtlSeconds === undefined ? storeTtlSeconds : options.observationStoreTtlSeconds,
      history_maxlen: options.observationHistoryMaxlen
    })
  )

/** From the broker to clients: the hub, event streams and histories, and who works on replay jobs. */
export const statuses = ({ aliasConfig, observationSink, topology, ...options }: Options) => {
  const waiting = waitingMessages({ topology, ...options })
  const hub = StatusHub.layer({
    prefix: options.storePrefix ?? "svc",
    prefetch: options.hubPrefetch,
    consumeArguments: options.hubConsumeArguments,
    sanitizeMetaKeys: options.hubSanitizeMetaKeys,
    aliasConfig,
    observationSink
  })
  const stream = EventStream.layer({
    terminalStatuses: options.sseTerminalStatuses,
    outputAdapter: options.sseOutputAdapter,
    ...(options.sseMaxOpenStreams !== undefined && { maxOpenStreams: options.sseMaxOpenStreams }),
    ...(options.sseMaxOpenStreamsPerAddress !== undefined && {
      maxOpenStreamsPerAddress: options.sseMaxOpenStreamsPerAddress
    }),
    aliasConfig,
    observationSink
  })
  const read = Layer.mergeAll(
    stream,
    History.layer({ topology, aliasConfig, sanitizeMetaKeys: options.hubSanitizeMetaKeys }),
    ReplayJobs.layer({ prefix: options.dlqStorePrefix }),
    waiting,
    BrokerClient.layer({ topology, aliasConfig })
  )
  return Layer.merge(hub, ReplayWorker.layer()).pipe(Layer.provideMerge(read))
}

/** Graphs and explanations of what is stored. */
export const graphs = (options: Options) => {
  const { otherTopologies, sseTerminalStatuses, topology } = options
  return ExecutionGraphService.layer({ topology, otherTopologies, terminalStatuses: sseTerminalStatuses }).pipe(
    Layer.provide(waitingMessages(options))
  )
}

const waitingMessages = ({ otherTopologies = [], topology }: Options) =>
  WaitingMessages.layer(new Inboxes([topology, ...otherTopologies]).all)

/**
 * Everything between workers and whoever asks about their tasks: the hub and the worker of replay jobs at work, and what
 * routers are made of: `EventStream`, `HistoryReader`, `StatusStore`, `DeadLetterStore`, `ReplayJobs`, `ObservationStore`,
 * `ExecutionGraphService` and the `BrokerClient`.
 */
export const layer = (options: Options) =>
  Layer.merge(statuses(options), graphs(options)).pipe(Layer.provideMerge(stores(options)))
