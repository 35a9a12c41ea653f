import { Effect, Layer, Option, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import * as StartupUpstreams from "../src/policy/routes/StartupUpstreams.ts"
import * as UpstreamBase from "../src/policy/routes/UpstreamBase.ts"
import type { Broker, BrokerError } from "../src/services/Broker.ts"
import type { Database } from "../src/services/Database.ts"
import type { Redis, RedisError } from "../src/services/Redis.ts"
import type { Upstream } from "../src/services/Upstream.ts"
import { type CliOptions, isTasksRole, type Role, selectVariants } from "./DoorOptions.ts"
import type { Settings } from "./Environment.ts"
import * as SessionName from "./SessionName.ts"

/** A door and what it is built on, in words for the banner. */
interface SelectedVariant<A, E> {
  readonly variant: string
  readonly remark: string
  readonly layer: Layer.Layer<A, E>
}

export interface Doors {
  readonly role: Role
  /** Whether the program works on the example's tasks, and tells of them. */
  readonly example: boolean
  readonly database: SelectedVariant<Database, SqlError.SqlError>
  readonly redis: SelectedVariant<Redis, RedisError>
  readonly broker: SelectedVariant<Broker, BrokerError>
  readonly upstream: SelectedVariant<Upstream, never>
  /** Those of the environment, or the simulator. */
  readonly upstreams: StartupUpstreams.UpstreamsByFamily
}

/** A variant for each door, of a wish without `problems`. */
export const select = (options: CliOptions, settings: Settings): Doors => {
  const { broker, database, redis } = selectVariants(options, settings)
  const isAllInProcess = Option.isNone(database.url) && Option.isNone(redis.url) && Option.isNone(broker.url)
  return {
    role: options.role,
    example: options.example || (options.role === "all" && isAllInProcess),
    database: Option.match(database.url, {
      onNone: () => ({
        variant: "embedded",
        remark: lostAtExit,
        layer: lazyLayer(() => import("./DatabaseEmbedded.ts").then(({ layer }) => layer))
      }),
      onSome: (url) => ({
        variant: "postgres",
        remark: "DATABASE_URL",
        layer: lazyLayer(() =>
          import("./DatabasePostgres.ts").then(({ layer }) => layer({ url, name: SessionName.of(settings) }))
        )
      })
    }),
    redis: Option.match(redis.url, {
      onNone: () => ({
        variant: "memory",
        remark: lostAtExit,
        layer: lazyLayer(() =>
          import("./RedisMemory.ts").then(({ layer }) => layer({ prefix: settings.redisKeyPrefix }))
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
        remark: lostAtExit,
        layer: lazyLayer(() => import("./BrokerMemory.ts").then(({ layer }) => layer()))
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
  { addressPolicy, upstreams }: Settings
): Pick<Doors, "upstream" | "upstreams"> => {
  const isConfigured = Object.values(upstreams).some(Option.isSome)
  const http = lazyLayer(() => import("./UpstreamHttp.ts").then(({ layerWith }) => layerWith({ addressPolicy })))
  if (Option.getOrElse(requested, () => (isConfigured ? "http" : "simulator")) === "http") {
    const remark = isConfigured ? describeUpstreams(upstreams) : "none, until there is a provider row"
    return { upstreams, upstream: { variant: "http", remark, layer: http } }
  }
  const upstream = Option.isSome(requested)
    ? // asked for by name, it answers whatever is configured: nothing leaves the machine
      {
        remark: "answers offline, also for provider rows and services; no model is asked",
        layer: lazyLayer(() => import("./UpstreamSimulator.ts").then(({ layer }) => layer))
      }
    : {
        remark: "answers offline, until there is a provider row; no model is asked",
        layer: lazyLayer(() =>
          import("./UpstreamSimulator.ts").then(({ layerAt }) => layerAt(simulatedUpstream.base.origin, http))
        )
      }
  return {
    upstreams: { ...StartupUpstreams.noUpstreams, both: Option.some(simulatedUpstream) },
    upstream: { variant: "simulator", ...upstream }
  }
}

/** It takes any credential: a first try needs none of its own. */
const simulatedUpstream: StartupUpstreams.StartupUpstream = {
  name: "simulator",
  base: UpstreamBase.atRoot("http://simulator.invalid"),
  serviceKey: Option.some(Redacted.make("simulated-credential"))
}

/** Where each family goes, in words. */
const describeUpstreams = ({ a, b, both }: StartupUpstreams.UpstreamsByFamily): string =>
  [
    ...Option.toArray(both).map(({ base }) => UpstreamBase.addressOf(base)),
    ...Option.toArray(a).map(({ base }) => `OpenAI: ${UpstreamBase.addressOf(base)}`),
    ...Option.toArray(b).map(({ base }) => `Anthropic: ${UpstreamBase.addressOf(base)}`)
  ].join(", ")

const lostAtExit = "in this process: what it holds is lost at exit"

/** A door of which nothing is loaded before it opens: most programs open one variant of each. */
const lazyLayer = <A, E>(load: () => Promise<Layer.Layer<A, E>>): Layer.Layer<A, E> =>
  Layer.unwrap(Effect.promise(load))
