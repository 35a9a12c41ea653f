import { Option } from "effect"
import type { Environment } from "./environment/Variables.ts"

export const roles = ["gateway", "control", "messaging", "status", "graph", "all"] as const
export type Role = (typeof roles)[number]

const tasksRoles = ["messaging", "status", "graph"] as const
/** These roles run tasks or serve the state of tasks. They need no database. */
export type TasksRole = (typeof tasksRoles)[number]
export const isTasksRole = (role: Role): role is TasksRole => tasksRoles.some((one) => one === role)

export type Door = "database" | "redis" | "broker" | "upstream"

/** Which tasks a process runs or serves. */
export type TasksSource =
  | { readonly _tag: "None" }
  | { readonly _tag: "Example" }
  | { readonly _tag: "Module"; readonly path: string }

export const tasksSourceOf = ({ example, tasks }: Pick<CliOptions, "example" | "tasks">): TasksSource =>
  Option.match(tasks, {
    onNone: () => (example ? { _tag: "Example" } : { _tag: "None" }),
    onSome: (path) => ({ _tag: "Module", path })
  })

/** Returns the external services that a role uses. In the roles `all` and `control`, only tasks use the broker. */
export const doorsUsedBy = (options: Pick<CliOptions, "role" | "example" | "tasks">): ReadonlyArray<Door> => {
  if (isTasksRole(options.role)) return ["redis", "broker"]
  const hasTasks = tasksSourceOf(options)._tag !== "None"
  return hasTasks ? ["database", "redis", "broker", "upstream"] : ["database", "redis", "upstream"]
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
  /** The path of the module whose tasks the process runs. */
  readonly tasks: Option.Option<string>
  /** The directory in which variants inside the process keep their data. Without it, `SVC_DATA_DIR` decides. */
  readonly data: Option.Option<string>
  /** Runs the example's tasks. */
  readonly example: boolean
  /** The number of processes that share the proxy listener. Without it, `GATEWAY_WORKERS` decides. */
  readonly workers: Option.Option<number>
}

/** Returns the number of processes that share the proxy listener. Other roles run in one process. */
export const workersOf = (
  options: Pick<CliOptions, "role" | "workers">,
  settings: Pick<CliOptions, "workers">
): number =>
  options.role === "gateway"
    ? Option.getOrElse(
        Option.orElse(options.workers, () => settings.workers),
        () => 1
      )
    : 1

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
    ...tasksProblems(options),
    ...workersProblems(options),
    ...missingUrl("--database postgres", "DATABASE_URL", database),
    ...missingUrl("--redis ioredis", "REDIS_URL", redis),
    ...missingUrl("--broker amqp", "RABBITMQ_URL", broker),
    ...unsharedDoor(options, "database", "database", "DATABASE_URL", database),
    ...unsharedDoor(options, "redis", "Redis", "REDIS_URL", redis),
    ...unsharedDoor(options, "broker", "broker", "RABBITMQ_URL", broker)
  ]
}

const tasksProblems = ({ example, role, tasks }: CliOptions): ReadonlyArray<string> => {
  if (example && Option.isSome(tasks)) return ["--tasks and --example exclude each other. Remove one of them."]
  const hasTasks = example || Option.isSome(tasks)
  if (isTasksRole(role) && !hasTasks) {
    return [
      `The role ${role} needs tasks. Name the module of your tasks with --tasks ./tasks.ts, or see the example's tasks with --example.`
    ]
  }
  if (role === "gateway" && hasTasks) {
    return [`The role ${role} has no tasks. Remove ${example ? "--example" : "--tasks"}.`]
  }
  return []
}

const workersProblems = ({ role, workers }: CliOptions): ReadonlyArray<string> => {
  if (role === "gateway" || Option.isNone(workers)) return []
  const way =
    role === "all" ? "Remove --workers, or start the role gateway with it beside a role control." : "Remove --workers."
  return [`The role ${role} runs in one process: --workers is for the role gateway. ${way}`]
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
