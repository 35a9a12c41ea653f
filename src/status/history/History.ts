import { Context, Effect, Layer, Schema, Semaphore } from "effect"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { ContractAliasConfig, ContractAliases } from "../../messaging/topology/Aliases.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import type { Topology } from "../../messaging/topology/Topology.ts"
import { Broker, type BrokerError } from "../../services/Broker.ts"
import type { RedisError } from "../../services/Redis.ts"
import { StatusStore } from "../store/StatusStore.ts"
import * as StatusScan from "./StatusScan.ts"

/** A history comes from one of these: `store` is the status store in Redis, `stream` is the broker's status queue. */
export type Source = "store" | "stream"

export interface HistoryQuery {
  readonly taskId?: string | undefined
  /** The first event to return, as an offset in the stream or a sequence number in the store. `last` is the newest. */
  readonly startOffset: "first" | "last" | number
  /** The time limit in seconds. Default for a stream: `maxSeconds` of the reader. */
  readonly maxSeconds?: number | undefined
  /** The maximum number of events, counted from `startOffset`. Default: `maxEvents` of the reader. */
  readonly maxScan?: number | undefined
}

/** The maximum number of requests is scanning the status queue already. */
export class HistoryBusy extends Schema.TaggedError<HistoryBusy>()("HistoryBusy", { message: Schema.String }) {}

export interface StreamReader {
  readonly queue: string
  readonly isStream: boolean
  readonly read: (
    query: HistoryQuery
  ) => Effect.Effect<StatusScan.ScanResult, BrokerError | HistoryBusy | StatusScan.QueueInUse>
}

/** Reads the history of a task, or of the status stream. */
export class HistoryReader extends Context.Service<
  HistoryReader,
  {
    /** The source for requests that do not name one. */
    readonly source: Source
    /** The upper limits of a query, from the options. */
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
  /** The maximum size of a result in bytes. The first two events are returned whatever their size. Default: 32 MiB. */
  readonly maxBytes?: number
}

export interface Options extends StoreOptions {
  /** The source for requests that do not name one. Default: `store`. */
  readonly source?: Source
  /** The topology that contains the status queue. */
  readonly topology: Topology
  /** The field aliases of events on the broker. Default: `ContractAliases`, or only the built-in alias. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /** The members of `meta` to remove, which must be the same as in the hub. Default: `["auth_token"]`. */
  readonly sanitizeMetaKeys?: ReadonlyArray<string> | undefined
  /** The maximum number of messages that one scan examines. Default: 1,000,000. */
  readonly maxMessages?: number
}

/** Reads histories from the store, or from the broker's status queue for requests with `source=stream`. */
export const layer = (options: Options): Layer.Layer<HistoryReader, SettingsError, StatusStore | Broker> =>
  Layer.effect(
    HistoryReader,
    Effect.gen(function* () {
      const broker = yield* Broker
      const caps = yield* capsOf(options)
      const { status } = options.topology
      const { sanitizeMetaKeys } = options
      const aliases = options.aliasConfig ?? (yield* ContractAliases) ?? new ContractAliasConfig()
      // Two scans of a plain queue at the same time would each receive only a part of its messages.
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
              new HistoryBusy({ message: "The status queue is being read by other requests: try again in a moment." })
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

/** Reading the store is one round trip, which has a deadline of its own. `maxSeconds` can only shorten it. */
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

/** Each scan needs a channel and up to `maxBytes` of memory. */
const maxConcurrentScans = 4
