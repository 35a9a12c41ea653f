import { join } from "node:path"
import { Effect, Layer, Option, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import * as StartupUpstreams from "../src/policy/routes/StartupUpstreams.ts"
import * as UpstreamBase from "../src/policy/routes/UpstreamBase.ts"
import type { Broker, BrokerError } from "../src/services/Broker.ts"
import type { Database } from "../src/services/Database.ts"
import type { Redis, RedisError } from "../src/services/Redis.ts"
import type { Upstream } from "../src/services/Upstream.ts"
import {
  type CliOptions,
  type Door,
  doorsUsedBy,
  isTasksRole,
  type Role,
  selectVariants,
  type TasksSource,
  tasksSourceOf,
  workersOf
} from "./DoorOptions.ts"
import * as DataDirectory from "./data/DataDirectory.ts"
import type { Settings } from "./Environment.ts"
import * as SessionName from "./postgres/SessionName.ts"

/** The program prints `variant` and `remark` at startup. */
interface SelectedVariant<A, E> {
  readonly variant: string
  readonly remark: string
  readonly layer: Layer.Layer<A, E>
}

export interface Doors {
  readonly role: Role
  readonly tasks: TasksSource
  /** The doors that the process opens. */
  readonly used: ReadonlyArray<Door>
  /** The number of processes that share the proxy listener. */
  readonly workers: number
  /** The directory that the options or the environment name, whether or not a variant uses it. */
  readonly dataDirectory: Option.Option<string>
  readonly database: SelectedVariant<Database, SqlError.SqlError | DataDirectory.DataFailure>
  readonly redis: SelectedVariant<Redis, RedisError | DataDirectory.DataFailure>
  readonly broker: SelectedVariant<Broker, BrokerError | DataDirectory.DataFailure>
  readonly upstream: SelectedVariant<Upstream, never>
  /** The upstreams that the environment configures, or the simulator. */
  readonly upstreams: StartupUpstreams.UpstreamsByFamily
}

/** The caller must first reject options for which `problemsOf` returns a problem. */
export const select = (options: CliOptions, settings: Settings): Doors => {
  const { broker, database, redis } = selectVariants(options, settings)
  const dataDirectory = Option.orElse(options.data, () => settings.dataDirectory)
  const directory = Option.map(dataDirectory, DataDirectory.layer)
  return {
    role: options.role,
    dataDirectory,
    tasks: tasksSourceOf(options),
    workers: workersOf(options, settings),
    used: doorsUsedBy(options),
    database: Option.match(database.url, {
      onNone: () => ({
        variant: "embedded",
        remark: keptIn(dataDirectory, "database", "a power cut may damage it"),
        layer: lazyLayer(() =>
          import("./DatabaseEmbedded.ts").then(({ layer, layerOnDisk }) =>
            Option.match(directory, { onNone: () => layer, onSome: (held) => Layer.provide(layerOnDisk, held) })
          )
        )
      }),
      onSome: (url) => ({
        variant: "postgres",
        remark: "DATABASE_URL",
        layer: lazyLayer(() =>
          import("./DatabasePostgres.ts").then(({ layer }) =>
            layer({ url, name: SessionName.of(settings), maxConnections: settings.pools.databaseSessions })
          )
        )
      })
    }),
    redis: Option.match(redis.url, {
      onNone: () => ({
        variant: "memory",
        remark: keptIn(dataDirectory, "redis", "a power cut may lose the last second"),
        layer: lazyLayer(() =>
          import("./RedisMemory.ts").then(({ layer, layerOnDisk }) => {
            const options = { prefix: settings.redisKeyPrefix }
            return Option.match(directory, {
              onNone: () => layer(options),
              onSome: (held) => Layer.provide(layerOnDisk(options), held)
            })
          })
        )
      }),
      onSome: (url) => ({
        variant: "ioredis",
        remark: "REDIS_URL",
        layer: lazyLayer(() =>
          import("./RedisIoredis.ts").then(({ layer }) =>
            layer({
              url,
              prefix: settings.redisKeyPrefix,
              whenUnreachable: isTasksRole(options.role) ? "wait" : "fail"
            })
          )
        )
      })
    }),
    broker: Option.match(broker.url, {
      onNone: () => ({
        variant: "memory",
        remark: keptIn(dataDirectory, "broker", "a power cut may lose the last second"),
        layer: lazyLayer(() =>
          import("./BrokerMemory.ts").then(({ layer, layerOnDisk }) =>
            Option.match(directory, { onNone: () => layer(), onSome: (held) => Layer.provide(layerOnDisk(), held) })
          )
        )
      }),
      onSome: (url) => ({
        variant: "amqp",
        remark: "RABBITMQ_URL",
        layer: lazyLayer(() => import("./BrokerAmqp.ts").then(({ layer }) => layer({ url, whenUnreachable: "wait" })))
      })
    }),
    ...selectUpstream(options.upstream, settings)
  }
}

const selectUpstream = (
  requested: CliOptions["upstream"],
  { addressPolicy, pools, upstreams }: Settings
): Pick<Doors, "upstream" | "upstreams"> => {
  const isConfigured = Object.values(upstreams).some(Option.isSome)
  const http = lazyLayer(() =>
    import("./UpstreamHttp.ts").then(({ layerWith }) => layerWith({ ...pools.upstream, addressPolicy }))
  )
  if (Option.getOrElse(requested, () => (isConfigured ? "http" : "simulator")) === "http") {
    const remark = isConfigured ? describeUpstreams(upstreams) : "none until a provider is stored"
    return { upstreams, upstream: { variant: "http", remark, layer: http } }
  }
  const upstream = Option.isSome(requested)
    ? // An explicitly requested simulator serves every provider and service, so no request leaves the machine.
      {
        remark: "simulated responses, also for stored providers and services; no model is called",
        layer: lazyLayer(() => import("./UpstreamSimulator.ts").then(({ layer }) => layer))
      }
    : {
        remark: "simulated responses until a provider is stored; no model is called",
        layer: lazyLayer(() =>
          import("./UpstreamSimulator.ts").then(({ layerAt }) => layerAt(simulatedUpstream.base.origin, http))
        )
      }
  return {
    upstreams: { ...StartupUpstreams.noUpstreams, both: Option.some(simulatedUpstream) },
    upstream: { variant: "simulator", ...upstream }
  }
}

/** The credential can be any text, because the simulator accepts all credentials. */
const simulatedUpstream: StartupUpstreams.StartupUpstream = {
  name: "simulator",
  base: UpstreamBase.atRoot("http://simulator.invalid"),
  serviceKey: Option.some(Redacted.make("simulated-credential"))
}

const describeUpstreams = ({ a, b, both }: StartupUpstreams.UpstreamsByFamily): string =>
  [
    ...Option.toArray(both).map(({ base }) => UpstreamBase.addressOf(base)),
    ...Option.toArray(a).map(({ base }) => `OpenAI: ${UpstreamBase.addressOf(base)}`),
    ...Option.toArray(b).map(({ base }) => `Anthropic: ${UpstreamBase.addressOf(base)}`)
  ].join(", ")

const lostAtExit = "in this process: its data is lost at exit; --data DIR or SVC_DATA_DIR keeps it"

const keptIn = (directory: Option.Option<string>, folder: string, limit: string): string =>
  Option.match(directory, {
    onNone: () => lostAtExit,
    onSome: (path) => `in this process: kept in ${join(path, folder)}, also after kill -9; ${limit}`
  })

/** Imports a module only when its layer is built, because a process does not use all variants. */
const lazyLayer = <A, E>(load: () => Promise<Layer.Layer<A, E>>): Layer.Layer<A, E> =>
  Layer.unwrap(Effect.promise(load))
