import { type Layer, Option, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import * as StartupUpstreams from "../src/policy/routes/StartupUpstreams.ts"
import * as UpstreamBase from "../src/policy/routes/UpstreamBase.ts"
import type { Broker, BrokerError } from "../src/services/Broker.ts"
import type { Database } from "../src/services/Database.ts"
import type { Redis, RedisError } from "../src/services/Redis.ts"
import type { Upstream } from "../src/services/Upstream.ts"
import * as BrokerAmqp from "./BrokerAmqp.ts"
import * as BrokerMemory from "./BrokerMemory.ts"
import * as DatabaseEmbedded from "./DatabaseEmbedded.ts"
import * as DatabasePostgres from "./DatabasePostgres.ts"
import type { Environment, Settings } from "./Environment.ts"
import * as RedisIoredis from "./RedisIoredis.ts"
import * as RedisMemory from "./RedisMemory.ts"
import * as SessionName from "./SessionName.ts"
import * as UpstreamHttp from "./UpstreamHttp.ts"
import * as UpstreamSimulator from "./UpstreamSimulator.ts"

export const roles = ["gateway", "control", "messaging", "status", "graph", "all"] as const
export type Role = (typeof roles)[number]

const tasksRoles = ["messaging", "status", "graph"] as const
/** They work on tasks, or tell of them: there is nothing of operators' in them. */
export type TasksRole = (typeof tasksRoles)[number]
export const isOfTasks = (role: Role): role is TasksRole => tasksRoles.some((one) => one === role)

export type Door = "database" | "redis" | "broker" | "upstream"

/** The doors that the program of a role goes through; the broker in `all` only for the example. */
export const usedBy = ({ example, role }: Pick<Doors, "role" | "example">): ReadonlyArray<Door> => {
  if (isOfTasks(role)) return ["redis", "broker"]
  return role === "all" && example ? ["database", "redis", "broker", "upstream"] : ["database", "redis", "upstream"]
}

export const databaseVariants = ["postgres", "embedded"] as const
export const redisVariants = ["ioredis", "memory"] as const
export const brokerVariants = ["amqp", "memory"] as const
export const upstreamVariants = ["http", "simulator"] as const

/** What the command line asks for; what it leaves out follows the URL variables. */
export interface Wish {
  readonly role: Role
  readonly database: Option.Option<(typeof databaseVariants)[number]>
  readonly redis: Option.Option<(typeof redisVariants)[number]>
  readonly broker: Option.Option<(typeof brokerVariants)[number]>
  readonly upstream: Option.Option<(typeof upstreamVariants)[number]>
  /** Whether the example's tasks are worked on and told of, also on real servers. */
  readonly example: boolean
}

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

/** What the variables name that decide on variants, read or as they are. */
export interface Urls<Database = unknown, Redis = unknown, Broker = unknown> {
  readonly databaseUrl: Option.Option<Database>
  readonly redisUrl: Option.Option<Redis>
  readonly rabbitmqUrls: Option.Option<Broker>
}

/** Of an environment that cannot be read: what is set there, whether it is a URL or not. */
export const urlsOf = (environment: Environment): Urls => {
  const set = (variable: string) => Option.fromUndefinedOr(environment[variable]?.trim() || undefined)
  return {
    databaseUrl: set("DATABASE_URL"),
    redisUrl: set("REDIS_URL"),
    rabbitmqUrls: set("RABBITMQ_URL")
  }
}

const choices = <Database, Redis, Broker>(wish: Wish, urls: Urls<Database, Redis, Broker>) => ({
  database: choice(wish.database, urls.databaseUrl, ["postgres", "embedded"]),
  redis: choice(wish.redis, urls.redisUrl, ["ioredis", "memory"]),
  broker: choice(wish.broker, urls.rabbitmqUrls, ["amqp", "memory"])
})

/** Why the wish cannot be, in one sentence each. */
export const problems = (wish: Wish, urls: Urls): ReadonlyArray<string> => {
  const { broker, database, redis } = choices(wish, urls)
  return [
    ...(isOfTasks(wish.role) && !wish.example
      ? [
          `The role ${wish.role} has the example's tasks alone, and does not bring them to real servers by itself: add --example. Tasks of your own have workers and a status server in a program of yours.`
        ]
      : []),
    ...missing("--database postgres", "DATABASE_URL", database),
    ...missing("--redis ioredis", "REDIS_URL", redis),
    ...missing("--broker amqp", "RABBITMQ_URL", broker),
    ...unshared(wish, "database", "database", "DATABASE_URL", database),
    ...unshared(wish, "redis", "Redis", "REDIS_URL", redis),
    ...unshared(wish, "broker", "broker", "RABBITMQ_URL", broker)
  ]
}

/** A variant for each door, of a wish without `problems`. */
export const choose = (wish: Wish, settings: Settings): Doors => {
  const { broker, database, redis } = choices(wish, settings)
  const nothingIsShared = Option.isNone(database.url) && Option.isNone(redis.url) && Option.isNone(broker.url)
  return {
    role: wish.role,
    example: wish.example || (wish.role === "all" && nothingIsShared),
    database: Option.match(database.url, {
      onNone: () => ({ variant: "embedded", remark: endsWithProcess, layer: DatabaseEmbedded.layer }),
      onSome: (url) => ({
        variant: "postgres",
        remark: "DATABASE_URL",
        layer: DatabasePostgres.layer({ url, name: SessionName.of(settings) })
      })
    }),
    redis: Option.match(redis.url, {
      onNone: () => ({
        variant: "memory",
        remark: endsWithProcess,
        layer: RedisMemory.layer({ prefix: settings.redisKeyPrefix })
      }),
      onSome: (url) => ({
        variant: "ioredis",
        remark: "REDIS_URL",
        layer: RedisIoredis.layer({
          url,
          prefix: settings.redisKeyPrefix,
          whenUnreachable: isOfTasks(wish.role) ? "wait" : "fail"
        })
      })
    }),
    broker: Option.match(broker.url, {
      onNone: () => ({ variant: "memory", remark: endsWithProcess, layer: BrokerMemory.layer() }),
      onSome: (url) => ({
        variant: "amqp",
        remark: "RABBITMQ_URL",
        layer: BrokerAmqp.layer({ url, whenUnreachable: "wait" })
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
  const http = UpstreamHttp.layerWith({ addresses })
  if (Option.getOrElse(wish, () => (named ? "http" : "simulator")) === "http") {
    const remark = named ? addressesOf(upstreams) : "none, until there is a provider row"
    return { upstreams, upstream: { variant: "http", remark, layer: http } }
  }
  const upstream = Option.isSome(wish)
    ? // asked for by name, it answers whatever is configured: nothing leaves the machine
      {
        remark: "answers offline, also for provider rows and services; no model is asked",
        layer: UpstreamSimulator.layer
      }
    : {
        remark: "answers offline, until there is a provider row; no model is asked",
        layer: UpstreamSimulator.at(simulated.base.origin, http)
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

interface VariantSelection<Url> {
  /** Present: the real variant, on it. */
  readonly url: Option.Option<Url>
  /** The real variant is asked for and its URL is not set. */
  readonly unset: boolean
}

const choice = <Real extends string, Fake extends string, Url>(
  wish: Option.Option<Real | Fake>,
  url: Option.Option<Url>,
  [real, fake]: readonly [Real, Fake]
): VariantSelection<Url> => {
  const wanted = Option.getOrElse(wish, () => (Option.isSome(url) ? real : fake))
  return wanted === real ? { url, unset: Option.isNone(url) } : { url: Option.none(), unset: false }
}

const missing = (flag: string, variable: string, { unset }: VariantSelection<unknown>): ReadonlyArray<string> =>
  unset ? [`${flag} needs ${variable}, which is not set.`] : []

const unshared = (
  wish: Wish,
  door: Door,
  name: string,
  variable: string,
  { unset, url }: VariantSelection<unknown>
): ReadonlyArray<string> =>
  wish.role !== "all" && usedBy(wish).includes(door) && !unset && Option.isNone(url)
    ? [
        `The role ${wish.role} shares its ${name} with other processes, and an in-process one is shared with nobody: set ${variable}, or run the role all.`
      ]
    : []
