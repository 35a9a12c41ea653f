import { Option } from "effect"
import type { Environment } from "./Environment.ts"

export const roles = ["gateway", "control", "messaging", "status", "graph", "all"] as const
export type Role = (typeof roles)[number]

const tasksRoles = ["messaging", "status", "graph"] as const
/** Roles that work on tasks or report on them. They need no operator state. */
export type TasksRole = (typeof tasksRoles)[number]
export const isTasksRole = (role: Role): role is TasksRole => tasksRoles.some((one) => one === role)

export type Door = "database" | "redis" | "broker" | "upstream"

/** The doors that a role opens. The role `all` needs the broker only for the example. */
export const doorsUsedBy = ({ example, role }: Pick<CliOptions, "role" | "example">): ReadonlyArray<Door> => {
  if (isTasksRole(role)) return ["redis", "broker"]
  return role === "all" && example ? ["database", "redis", "broker", "upstream"] : ["database", "redis", "upstream"]
}

export const databaseVariants = ["postgres", "embedded"] as const
export const redisVariants = ["ioredis", "memory"] as const
export const brokerVariants = ["amqp", "memory"] as const
export const upstreamVariants = ["http", "simulator"] as const

/** The options of the command line. A door without an option follows its URL variable. */
export interface CliOptions {
  readonly role: Role
  readonly database: Option.Option<(typeof databaseVariants)[number]>
  readonly redis: Option.Option<(typeof redisVariants)[number]>
  readonly broker: Option.Option<(typeof brokerVariants)[number]>
  readonly upstream: Option.Option<(typeof upstreamVariants)[number]>
  /** Runs the workers and status routes of the example's tasks, also on real servers. */
  readonly example: boolean
}

/** The URL variables that select the variants of the doors, parsed or as raw text. */
export interface DoorUrls<Database = unknown, Redis = unknown, Broker = unknown> {
  readonly databaseUrl: Option.Option<Database>
  readonly redisUrl: Option.Option<Redis>
  readonly rabbitmqUrls: Option.Option<Broker>
}

/** The URL variables that are set, valid or not. Used when the environment as a whole cannot be read. */
export const urlsInEnvironment = (environment: Environment): DoorUrls => {
  const set = (variable: string) => Option.fromUndefinedOr(environment[variable]?.trim() || undefined)
  return {
    databaseUrl: set("DATABASE_URL"),
    redisUrl: set("REDIS_URL"),
    rabbitmqUrls: set("RABBITMQ_URL")
  }
}

/** Selects, for each door, the real or the in-process variant. */
export const selectVariants = <Database, Redis, Broker>(
  options: CliOptions,
  urls: DoorUrls<Database, Redis, Broker>
) => ({
  database: selectVariant(options.database, urls.databaseUrl, ["postgres", "embedded"]),
  redis: selectVariant(options.redis, urls.redisUrl, ["ioredis", "memory"]),
  broker: selectVariant(options.broker, urls.rabbitmqUrls, ["amqp", "memory"])
})

/** Reasons why the options cannot work, one sentence each. */
export const problemsOf = (options: CliOptions, urls: DoorUrls): ReadonlyArray<string> => {
  const { broker, database, redis } = selectVariants(options, urls)
  return [
    ...(isTasksRole(options.role) && !options.example
      ? [
          `The role ${options.role} runs only the example's tasks, and on real servers only on request: add --example. Tasks of your own need a program that uses the library.`
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
  /** Set when the real variant is selected. */
  readonly url: Option.Option<Url>
  /** The real variant is requested, and its URL variable is not set. */
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
        `The role ${options.role} shares its ${name} with other processes, but an in-process variant cannot be shared: set ${variable}, or run the role all.`
      ]
    : []
