import { Context, Effect, Layer, Schema, Semaphore } from "effect"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { ContractAliasConfig, ContractAliases } from "../../messaging/topology/Aliases.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import type { Topology } from "../../messaging/topology/Topology.ts"
import { Broker, type BrokerError } from "../../services/Broker.ts"
import type { RedisError } from "../../services/Redis.ts"
import { StatusStore } from "../store/StatusStore.ts"
import * as StatusScan from "./StatusScan.ts"

/** The source of a history: the status store in Redis (`store`) or the status queue on the broker (`stream`). */
export type Source = "store" | "stream"

export interface HistoryQuery {
  readonly taskId?: string | undefined
  /** The first event to return: a stream offset or a sequence number of the store. `last` is the newest event. */
  readonly startOffset: "first" | "last" | number
  /** The time limit of the query in seconds. Default for a stream: `maxSeconds` of the reader. */
  readonly maxSeconds?: number | undefined
  /** The maximum number of events to return. Default: `maxEvents` of the reader. */
  readonly maxScan?: number | undefined
}

/** Too many requests are scanning the status queue at the same time. */
export class HistoryBusy extends Schema.TaggedError<HistoryBusy>()("HistoryBusy", { message: Schema.String }) {}

export interface StreamReader {
  readonly queue: string
  readonly isStream: boolean
  readonly read: (
    query: HistoryQuery
  ) => Effect.Effect<StatusScan.ScanResult, BrokerError | HistoryBusy | StatusScan.QueueInUse>
}

/** Reads the status events of one task, or all events of the status stream. */
export class HistoryReader extends Context.Service<
  HistoryReader,
  {
    /** The source for requests that do not name one. */
    readonly source: Source
    /** The upper limits of `maxSeconds` and `maxScan` in a query. */
    readonly caps: { readonly maxSeconds: number; readonly maxEvents: number }
    readonly store: (taskId: string, query: HistoryQuery) => Effect.Effect<StatusScan.ScanResult, RedisError>
    readonly stream: StreamReader | undefined
  }
>()("svc/status/HistoryReader") {}

export interface StoreOptions {
  /** The maximum duration of a query in seconds. Default: 10. */
  readonly maxSeconds?: number
  /** The maximum number of events in a result. Default: 10,000. */
  readonly maxEvents?: number
  /** The maximum size of a result in bytes. The first two events are always returned. Default: 32 MiB. */
  readonly maxBytes?: number
}

export interface Options extends StoreOptions {
  /** The source for requests that do not name one. Default: `store`. */
  readonly source?: Source
  /** The topology that contains the status queue. */
  readonly topology: Topology
  /** The field aliases of events on the broker. Default: `ContractAliases`, or only the built-in alias. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /** The members of `meta` to remove from events. The status hub must remove the same. Default: `["auth_token"]`. */
  readonly sanitizeMetaKeys?: ReadonlyArray<string> | undefined
  /** The maximum number of messages that one scan examines. Default: 1,000,000. */
  readonly maxMessages?: number
}

/** Reads histories from the status store (`source=store`) or the broker's status queue (`source=stream`). */
export const layer = (options: Options): Layer.Layer<HistoryReader, SettingsError, StatusStore | Broker> =>
  Layer.effect(
    HistoryReader,
    Effect.gen(function* () {
      const broker = yield* Broker
      const caps = yield* capsOf(options)
      const { status } = options.topology
      const { sanitizeMetaKeys } = options
      const aliases = options.aliasConfig ?? (yield* ContractAliases) ?? new ContractAliasConfig()
      // Two concurrent scans of a classic or quorum queue would each receive only a part of its messages.
      const scans = yield* Semaphore.make(status.isStream ? maxConcurrentScans : 1)
      const read = Effect.fn("HistoryReader.stream")(({ maxScan, maxSeconds, startOffset, taskId }: HistoryQuery) =>
        StatusScan.scan(
          broker,
          status,
          { aliases, sanitizeMetaKeys },
          {
            taskId,
            startOffset,
            bounds: {
              seconds: maxSeconds ?? caps.maxSeconds,
              matches: maxScan ?? caps.maxEvents,
              messages: caps.maxMessages,
              bytes: caps.maxBytes
            }
          }
        ).pipe(
          scans.withPermitsIfAvailable(1),
          Effect.flatMap(Effect.fromOption),
          Effect.catchTag("NoSuchElementError", () =>
            Effect.fail(
              new HistoryBusy({ message: "Other requests are reading the status queue. Try again in a moment." })
            )
          )
        )
      )
      return HistoryReader.of({
        source: options.source ?? "store",
        caps,
        store: storeReader(yield* StatusStore, caps),
        stream: { queue: status.queue, isStream: status.isStream, read }
      })
    })
  )

/** Reads histories only from the store. */
export const layerStore = (options: StoreOptions = {}): Layer.Layer<HistoryReader, SettingsError, StatusStore> =>
  Layer.effect(
    HistoryReader,
    Effect.gen(function* () {
      const caps = yield* capsOf(options)
      const store = yield* StatusStore
      return HistoryReader.of({ source: "store", caps, store: storeReader(store, caps), stream: undefined })
    })
  )

interface Caps {
  readonly maxSeconds: number
  readonly maxEvents: number
  readonly maxMessages: number
  readonly maxBytes: number
}

const capsOf = (options: StoreOptions & Pick<Options, "maxMessages">): Effect.Effect<Caps, SettingsError> => {
  const issues = new ValidationIssues()
  const bounded = (field: string, value: number, maximum: number) =>
    issues.checkInteger(field, value, 1, maximum) ?? value
  const caps = {
    maxSeconds: bounded("maxSeconds", options.maxSeconds ?? 10, 3_600),
    maxEvents: bounded("maxEvents", options.maxEvents ?? 10_000, 1_000_000),
    maxMessages: bounded("maxMessages", options.maxMessages ?? 1_000_000, 1_000_000_000),
    maxBytes: bounded("maxBytes", options.maxBytes ?? 32 * 1024 * 1024, 1024 ** 3)
  }
  return issues.mistakes.length > 0
    ? Effect.fail(SettingsError.of("HistoryReader", issues.mistakes))
    : Effect.succeed(caps)
}

/** A read of the store is one Redis round trip with its own timeout. `maxSeconds` can only shorten this timeout. */
const storeReader = (store: StatusStore["Service"], caps: Caps): HistoryReader["Service"]["store"] =>
  Effect.fn("HistoryReader.store")((taskId, { maxScan = caps.maxEvents, maxSeconds, startOffset }) => {
    const read = Effect.map(
      store.history(taskId, { ...rangeOf(startOffset), atMost: { events: maxScan, bytes: caps.maxBytes } }),
      ({ events, newest, oldest }): StatusScan.ScanResult => {
        const { sequence: last } = events.at(-1) ?? { sequence: newest }
        return {
          events: events.map(({ json }) => json),
          truncated: last < newest,
          nextOffset: last + 1,
          oldestOffset: oldest || undefined
        }
      }
    )
    return maxSeconds === undefined
      ? read
      : Effect.timeoutOrElse(read, {
          duration: maxSeconds * 1_000,
          orElse: () =>
            Effect.succeed<StatusScan.ScanResult>({
              events: [],
              truncated: true,
              nextOffset: typeof startOffset === "number" ? startOffset : undefined
            })
        })
  })

const rangeOf = (startOffset: HistoryQuery["startOffset"]) =>
  startOffset === "first" ? {} : startOffset === "last" ? { limit: 1 } : { after: startOffset - 1 }

/** Each scan of the status queue needs an AMQP channel and up to `maxBytes` of memory. */
const maxConcurrentScans = 4
