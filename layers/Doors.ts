import { Effect, Layer, Option, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import * as StartupUpstreams from "../src/policy/routes/StartupUpstreams.ts"
import * as UpstreamBase from "../src/policy/routes/UpstreamBase.ts"
import type { Broker, BrokerError } from "../src/services/Broker.ts"
import type { Database } from "../src/services/Database.ts"
import type { Redis, RedisError } from "../src/services/Redis.ts"
import type { Upstream } from "../src/services/Upstream.ts"
import { choices, isOfTasks, type Role, type Wish } from "./DoorOptions.ts"
import type { Settings } from "./Environment.ts"
import * as SessionName from "./SessionName.ts"

/** A door and what it is built on, in words for the banner. */
interface Chosen<A, E> {
  readonly variant: string
  readonly remark: string
  readonly layer: Layer.Layer<A, E>
}

export interface Doors {
  readonly role: Role
  /** Whether the program works on the example's tasks, and tells of them. */
  readonly example: boolean
  readonly database: Chosen<Database, SqlError.SqlError>
  readonly redis: Chosen<Redis, RedisError>
  readonly broker: Chosen<Broker, BrokerError>
  readonly upstream: Chosen<Upstream, never>
  /** Those of the environment, or the simulator. */
  readonly upstreams: StartupUpstreams.ByServed
}

/** A variant for each door, of a wish without `problems`. */
export const choose = (wish: Wish, settings: Settings): Doors => {
  const { broker, database, redis } = choices(wish, settings)
  const nothingIsShared = Option.isNone(database.url) && Option.isNone(redis.url) && Option.isNone(broker.url)
  return {
    role: wish.role,
    example: wish.example || (wish.role === "all" && nothingIsShared),
    database: Option.match(database.url, {
      onNone: () => ({
        variant: "embedded",
        remark: endsWithProcess,
        layer: loaded(() => import("./DatabaseEmbedded.ts").then(({ layer }) => layer))
      }),
      onSome: (url) => ({
        variant: "postgres",
        remark: "DATABASE_URL",
        layer: loaded(() =>
          import("./DatabasePostgres.ts").then(({ layer }) => layer({ url, name: SessionName.of(settings) }))
        )
      })
    }),
    redis: Option.match(redis.url, {
      onNone: () => ({
        variant: "memory",
        remark: endsWithProcess,
        layer: loaded(() => import("./RedisMemory.ts").then(({ layer }) => layer({ prefix: settings.redisKeyPrefix })))
      }),
      onSome: (url) => ({
        variant: "ioredis",
        remark: "REDIS_URL",
        layer: loaded(() =>
          import("./RedisIoredis.ts").then(({ layer }) =>
            layer({
              url,
              prefix: settings.redisKeyPrefix,
              whenUnreachable: isOfTasks(wish.role) ? "wait" : "fail"
            })
          )
        )
      })
    }),
    broker: Option.match(broker.url, {
      onNone: () => ({
        variant: "memory",
        remark: endsWithProcess,
        layer: loaded(() => import("./BrokerMemory.ts").then(({ layer }) => layer()))
      }),
      onSome: (url) => ({
        variant: "amqp",
        remark: "RABBITMQ_URL",
        layer: loaded(() => import("./BrokerAmqp.ts").then(({ layer }) => layer({ url, whenUnreachable: "wait" })))
      })
    }),
    ...upstreamOf(wish.upstream, settings)
  }
}

const upstreamOf = (
  wish: Wish["upstream"],
  { addresses, upstreams }: Settings
): Pick<Doors, "upstream" | "upstreams"> => {
  const named = Object.values(upstreams).some(Option.isSome)
  const http = loaded(() => import("./UpstreamHttp.ts").then(({ layerWith }) => layerWith({ addresses })))
  if (Option.getOrElse(wish, () => (named ? "http" : "simulator")) === "http") {
    const remark = named ? addressesOf(upstreams) : "none, until there is a provider row"
    return { upstreams, upstream: { variant: "http", remark, layer: http } }
  }
  const upstream = Option.isSome(wish)
    ? // asked for by name, it answers whatever is configured: nothing leaves the machine
      {
        remark: "answers offline, also for provider rows and services; no model is asked",
        layer: loaded(() => import("./UpstreamSimulator.ts").then(({ layer }) => layer))
      }
    : {
        remark: "answers offline, until there is a provider row; no model is asked",
        layer: loaded(() => import("./UpstreamSimulator.ts").then(({ at }) => at(simulated.base.origin, http)))
      }
  return {
    upstreams: { ...StartupUpstreams.none, both: Option.some(simulated) },
    upstream: { variant: "simulator", ...upstream }
  }
}

/** It takes any credential: a first try needs none of its own. */
const simulated: StartupUpstreams.StartupUpstream = {
  name: "simulator",
  base: UpstreamBase.atRoot("http://simulator.invalid"),
  serviceKey: Option.some(Redacted.make("simulated-credential"))
}

/** Where each family goes, in words. */
const addressesOf = ({ a, b, both }: StartupUpstreams.ByServed): string =>
  [
    ...Option.toArray(both).map(({ base }) => UpstreamBase.addressOf(base)),
    ...Option.toArray(a).map(({ base }) => `OpenAI: ${UpstreamBase.addressOf(base)}`),
    ...Option.toArray(b).map(({ base }) => `Anthropic: ${UpstreamBase.addressOf(base)}`)
  ].join(", ")

const endsWithProcess = "in this process: what it holds is lost at exit"

/** A door of which nothing is loaded before it opens: most programs open one variant of each. */
const loaded = <A, E>(load: () => Promise<Layer.Layer<A, E>>): Layer.Layer<A, E> => Layer.unwrap(Effect.promise(load))
