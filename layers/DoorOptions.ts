import { Option } from "effect"
import type { Environment } from "./Environment.ts"

export const roles = ["gateway", "control", "messaging", "status", "graph", "all"] as const
export type Role = (typeof roles)[number]

const tasksRoles = ["messaging", "status", "graph"] as const
/** They work on tasks, or tell of them: there is nothing of operators' in them. */
export type TasksRole = (typeof tasksRoles)[number]
export const isTasksRole = (role: Role): role is TasksRole => tasksRoles.some((one) => one === role)

export type Door = "database" | "redis" | "broker" | "upstream"

/** The doors that the program of a role goes through; the broker in `all` only for the example. */
export const doorsUsedBy = ({ example, role }: Pick<CliOptions, "role" | "example">): ReadonlyArray<Door> => {
  if (isTasksRole(role)) return ["redis", "broker"]
  return role === "all" && example ? ["database", "redis", "broker", "upstream"] : ["database", "redis", "upstream"]
}

export const databaseVariants = ["postgres", "embedded"] as const
export const redisVariants = ["ioredis", "memory"] as const
export const brokerVariants = ["amqp", "memory"] as const
export const upstreamVariants = ["http", "simulator"] as const

/** What the command line asks for; what it leaves out follows the URL variables. */
export interface CliOptions {
  readonly role: Role
  readonly database: Option.Option<(typeof databaseVariants)[number]>
  readonly redis: Option.Option<(typeof redisVariants)[number]>
  readonly broker: Option.Option<(typeof brokerVariants)[number]>
  readonly upstream: Option.Option<(typeof upstreamVariants)[number]>
  /** Whether the example's tasks are worked on and told of, also on real servers. */
  readonly example: boolean
}

/** What the variables name that decide on variants, read or as they are. */
export interface DoorUrls<Database = unknown, Redis = unknown, Broker = unknown> {
  readonly databaseUrl: Option.Option<Database>
  readonly redisUrl: Option.Option<Redis>
  readonly rabbitmqUrls: Option.Option<Broker>
}

/** Of an environment that cannot be read: what is set there, whether it is a URL or not. */
export const urlsInEnvironment = (environment: Environment): DoorUrls => {
  const set = (variable: string) => Option.fromUndefinedOr(environment[variable]?.trim() || undefined)
  return {
    databaseUrl: set("DATABASE_URL"),
    redisUrl: set("REDIS_URL"),
    rabbitmqUrls: set("RABBITMQ_URL")
  }
}

/** Of each door, whether the real variant is chosen. */
export const selectVariants = <Database, Redis, Broker>(
  options: CliOptions,
  urls: DoorUrls<Database, Redis, Broker>
) => ({
  database: selectVariant(options.database, urls.databaseUrl, ["postgres", "embedded"]),
  redis: selectVariant(options.redis, urls.redisUrl, ["ioredis", "memory"]),
  broker: selectVariant(options.broker, urls.rabbitmqUrls, ["amqp", "memory"])
})

/** Why the wish cannot be, in one sentence each. */
export const problemsOf = (options: CliOptions, urls: DoorUrls): ReadonlyArray<string> => {
  const { broker, database, redis } = selectVariants(options, urls)
  return [
    ...(isTasksRole(options.role) && !options.example
      ? [
          `The role ${options.role} has the example's tasks alone, and does not bring them to real servers by itself: add --example. Tasks of your own have workers and a status server in a program of yours.`
        ]
      : []),
    ...missingUrl("--database postgres", "DATABASE_URL", database),
    ...missingUrl("--redis ioredis", "REDIS_URL", redis),
    ...missingUrl("--broker amqp", "RABBITMQ_URL", broker),
    ...unsharedDoor(options, "database", "database", "DATABASE_URL", database),
    ...unsharedDoor(options, "redis", "Redis", "REDIS_URL", redis),
    ...unsharedDoor(options, "broker", "broker", "RABBITMQ_URL", broker)
  ]
}

interface VariantSelection<Url> {
  /** Present: the real variant, on it. */
  readonly url: Option.Option<Url>
  /** The real variant is asked for and its URL is not set. */
  readonly isUrlMissing: boolean
}

const selectVariant = <Real extends string, Fake extends string, Url>(
  requested: Option.Option<Real | Fake>,
  url: Option.Option<Url>,
  [real, fake]: readonly [Real, Fake]
): VariantSelection<Url> => {
  const variant = Option.getOrElse(requested, () => (Option.isSome(url) ? real : fake))
  return variant === real ? { url, isUrlMissing: Option.isNone(url) } : { url: Option.none(), isUrlMissing: false }
}

const missingUrl = (
  flag: string,
  variable: string,
  { isUrlMissing }: VariantSelection<unknown>
): ReadonlyArray<string> => (isUrlMissing ? [`${flag} needs ${variable}, which is not set.`] : [])

const unsharedDoor = (
  options: CliOptions,
  door: Door,
  name: string,
  variable: string,
  { isUrlMissing, url }: VariantSelection<unknown>
): ReadonlyArray<string> =>
  options.role !== "all" && doorsUsedBy(options).includes(door) && !isUrlMissing && Option.isNone(url)
    ? [
        `The role ${options.role} shares its ${name} with other processes, and an in-process one is shared with nobody: set ${variable}, or run the role all.`
      ]
    : []
