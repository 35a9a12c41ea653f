import { Context, Effect, Layer, Schema, Semaphore } from "effect"
import { SettingsError } from "../../messaging/envelope/Errors.ts"
import { ContractAliasConfig, ContractAliases } from "../../messaging/topology/Aliases.ts"
import { ValidationIssues } from "../../messaging/topology/Parameters.ts"
import type { Topology } from "../../messaging/topology/Topology.ts"
import { Broker, type BrokerError } from "../../services/Broker.ts"
import type { RedisError } from "../../services/Redis.ts"
import { StatusStore } from "../store/StatusStore.ts"
import * as StatusScan from "./StatusScan.ts"

/** `store`: what Redis keeps of a task. `stream`: the messages of the broker's status queue. */
export type Source = "store" | "stream"

export interface HistoryQuery {
  readonly taskId?: string | undefined
  /** `last`: the newest event; of a stream, its last chunk. A number: of a stream its offset, of the store a sequence. */
  readonly startOffset: "first" | "last" | number
  /** Of a stream, default: `maxSeconds` of the reader. */
  readonly maxSeconds?: number | undefined
  /** At most so many events, from the start. Default: `maxEvents` of the reader. */
  readonly maxScan?: number | undefined
}

/** Too many scans run already. */
export class HistoryBusy extends Schema.TaggedError<HistoryBusy>()("HistoryBusy", { message: Schema.String }) {}

export interface StreamReader {
  readonly queue: string
  readonly isStream: boolean
  readonly read: (
    query: HistoryQuery
  ) => Effect.Effect<StatusScan.ScanResult, BrokerError | HistoryBusy | StatusScan.QueueInUse>
}

/** What happened to a task, or on the status stream. */
export class HistoryReader extends Context.Service<
  HistoryReader,
  {
    /** Of who asks for none. */
    readonly source: Source
    /** No query may ask for more. */
    readonly caps: { readonly maxSeconds: number; readonly maxEvents: number }
    readonly store: (taskId: string, query: HistoryQuery) => Effect.Effect<StatusScan.ScanResult, RedisError>
    readonly stream: StreamReader | undefined
  }
>()("svc/status/HistoryReader") {}

export interface StoreOptions {
  /** No query takes longer. Default: 10. */
  readonly maxSeconds?: number
  /** No answer has more events. Default: 10,000. */
  readonly maxEvents?: number
  /** Of the events of an answer, but two however large. Default: 32 MiB. */
  readonly maxBytes?: number
}

export interface Options extends StoreOptions {
  /** Default: `store`. */
  readonly source?: Source
  /** Whose status queue is read. */
  readonly topology: Topology
  /** How events on the broker may be named. Default: `ContractAliases`, or the built-in alias alone. */
  readonly aliasConfig?: ContractAliasConfig | undefined
  /** Members of an event's `meta` that the stream has and nobody is shown, as of the hub. Default: `["auth_token"]`. */
  readonly sanitizeMetaKeys?: ReadonlyArray<string> | undefined
  /** Messages that a scan looks at. Default: 1,000,000. */
  readonly maxMessages?: number
}

/** Reads the store, and the broker's status queue for who asks for it with `source=stream`. */
export const layer = (options: Options): Layer.Layer<HistoryReader, SettingsError, StatusStore | Broker> =>
  Layer.effect(
    HistoryReader,
    Effect.gen(function* () {
      const broker = yield* Broker
      const caps = yield* capsOf(options)
      const { status } = options.topology
      const { sanitizeMetaKeys } = options
      const aliases = options.aliasConfig ?? (yield* ContractAliases) ?? new ContractAliasConfig()
      // of what is no stream, each would have a part
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
            Effect.fail(new HistoryBusy({ message: "Others read the status queue now: try again in a moment." }))
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

/** Reads the store alone. */
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
  const findings = new ValidationIssues()
  const bounded = (field: string, value: number, maximum: number) =>
    findings.checkInteger(field, value, 1, maximum) ?? value
  const caps = {
    maxSeconds: bounded("maxSeconds", options.maxSeconds ?? 10, 3_600),
    maxEvents: bounded("maxEvents", options.maxEvents ?? 10_000, 1_000_000),
    maxMessages: bounded("maxMessages", options.maxMessages ?? 1_000_000, 1_000_000_000),
    maxBytes: bounded("maxBytes", options.maxBytes ?? 32 * 1024 * 1024, 1024 ** 3)
  }
  return findings.mistakes.length > 0
    ? Effect.fail(SettingsError.of("HistoryReader", findings.mistakes))
    : Effect.succeed(caps)
}

/** One round trip, which Redis has a deadline of its own for. */
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

/** Each is a channel, and up to `maxBytes` of memory. */
const maxConcurrentScans = 4
