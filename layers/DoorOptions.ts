import { Option } from "effect"
import type { Environment } from "./Environment.ts"

export const roles = ["gateway", "control", "messaging", "status", "graph", "all"] as const
export type Role = (typeof roles)[number]

const tasksRoles = ["messaging", "status", "graph"] as const
/** These roles run tasks or serve the state of tasks. They need no database. */
export type TasksRole = (typeof tasksRoles)[number]
export const isTasksRole = (role: Role): role is TasksRole => tasksRoles.some((one) => one === role)

export type Door = "database" | "redis" | "broker" | "upstream"

/** Returns the external services that a role uses. With the role `all`, only the example's tasks use the broker. */
export const doorsUsedBy = ({ example, role }: Pick<CliOptions, "role" | "example">): ReadonlyArray<Door> => {
  if (isTasksRole(role)) return ["redis", "broker"]
  return role === "all" && example ? ["database", "redis", "broker", "upstream"] : ["database", "redis", "upstream"]
}

export const databaseVariants = ["postgres", "embedded"] as const
export const redisVariants = ["ioredis", "memory"] as const
export const brokerVariants = ["amqp", "memory"] as const
export const upstreamVariants = ["http", "simulator"] as const

/** The options select real servers or variants inside the process. Without an option, a URL variable decides. */
export interface CliOptions {
  readonly role: Role
  readonly database: Option.Option<(typeof databaseVariants)[number]>
  readonly redis: Option.Option<(typeof redisVariants)[number]>
  readonly broker: Option.Option<(typeof brokerVariants)[number]>
  readonly upstream: Option.Option<(typeof upstreamVariants)[number]>
  /** Runs the example's workers and status routes also with a real RabbitMQ and Redis. */
  readonly example: boolean
}

/** The values of `DATABASE_URL`, `REDIS_URL` and `RABBITMQ_URL`. A variable that is set selects the real server. */
export interface DoorUrls<Database = unknown, Redis = unknown, Broker = unknown> {
  readonly databaseUrl: Option.Option<Database>
  readonly redisUrl: Option.Option<Redis>
  readonly rabbitmqUrls: Option.Option<Broker>
}

/** Returns the URL variables without validation, to report problems in an invalid environment. */
export const urlsInEnvironment = (environment: Environment): DoorUrls => {
  const set = (variable: string) => Option.fromUndefinedOr(environment[variable]?.trim() || undefined)
  return {
    databaseUrl: set("DATABASE_URL"),
    redisUrl: set("REDIS_URL"),
    rabbitmqUrls: set("RABBITMQ_URL")
  }
}

/** Selects the real server or the variant inside the process, for database, Redis and broker. */
export const selectVariants = <Database, Redis, Broker>(
  options: CliOptions,
  urls: DoorUrls<Database, Redis, Broker>
) => ({
  database: selectVariant(options.database, urls.databaseUrl, ["postgres", "embedded"]),
  redis: selectVariant(options.redis, urls.redisUrl, ["ioredis", "memory"]),
  broker: selectVariant(options.broker, urls.rabbitmqUrls, ["amqp", "memory"])
})

/** Returns one sentence for each reason why the options cannot work. */
export const problemsOf = (options: CliOptions, urls: DoorUrls): ReadonlyArray<string> => {
  const { broker, database, redis } = selectVariants(options, urls)
  return [
    ...(isTasksRole(options.role) && !options.example
      ? [
          `The role ${options.role} runs only the example's tasks. To run these tasks, add --example. To run your own tasks, write a program that uses the library.`
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
  /** `none` if the variant inside the process is selected. */
  readonly url: Option.Option<Url>
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
        `The role ${options.role} shares its ${name} with other processes. The variant inside the process cannot be shared. Set ${variable}, or start one process with the role all.`
      ]
    : []
