import { Option } from "effect"
import type { Environment } from "./Environment.ts"

export const roles = ["gateway", "control", "messaging", "status", "graph", "all"] as const
export type Role = (typeof roles)[number]

const tasksRoles = ["messaging", "status", "graph"] as const
/** They work on tasks, or tell of them: there is nothing of operators' in them. */
export type TasksRole = (typeof tasksRoles)[number]
export const isOfTasks = (role: Role): role is TasksRole => tasksRoles.some((one) => one === role)

export type Door = "database" | "redis" | "broker" | "upstream"

/** The doors that the program of a role goes through; the broker in `all` only for the example. */
export const usedBy = ({ example, role }: Pick<Wish, "role" | "example">): ReadonlyArray<Door> => {
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

/** Of each door, whether the real variant is chosen. */
export const choices = <Database, Redis, Broker>(wish: Wish, urls: Urls<Database, Redis, Broker>) => ({
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
