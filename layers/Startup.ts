import { Console, Data, type Effect, Option, Runtime } from "effect"
import { Migrator, SqlError } from "effect/sql"
import { BrokerError } from "../src/services/Broker.ts"
import { RedisError } from "../src/services/Redis.ts"
import type { Doors } from "./Doors.ts"
import type { Settings } from "./Environment.ts"
import * as UnreadVariables from "./environment/UnreadVariables.ts"
import type { Address } from "./environment/Variables.ts"

/** The program cannot start, and prints `message`. */
export class StartRefused extends Data.TaggedError("StartRefused")<{ readonly message: string }> {
  /** The exit code `EX_CONFIG`. Another start would fail in the same way. */
  override readonly [Runtime.errorExitCode] = 78
}

/** A listener cannot open, for example because another process uses the port. */
export class ListenerRefused extends Data.TaggedError("ListenerRefused")<{
  readonly address: Address
  readonly cause: unknown
}> {}

export const bannerLine = (name: string, text: string) => `  ${name.padEnd(10)}${text}`

export const banner = (doors: Doors, settings: Settings): Effect.Effect<void> => {
  const { used } = doors
  const warnings = [
    ...(used.includes("database") && isDatabaseKept(doors) && Option.isNone(settings.encryptionKey)
      ? ["GATEWAY_ENCRYPTION_KEY is not set: upstream credentials are stored unencrypted"]
      : []),
    ...(used.includes("upstream") && doors.role !== "control" && doors.upstream.variant === "http"
      ? Object.values(settings.upstreams)
          .flatMap(Option.toArray)
          .filter(({ serviceKey }) => Option.isNone(serviceKey))
          .map(
            ({ name }) =>
              `${serviceKeyVariable(name)} is not set: requests need a credential stored for their key, their project or the provider`
          )
      : []),
    ...[...settings.unreadVariables, ...unusedDataDirectory(doors), ...unusedWorkers(doors, settings)].map(
      ({ reason, variable }) => `${variable} is set but has no effect, because ${reason}`
    )
  ]
  return Console.log(
    [
      `svc-runtime, role ${doors.role}`,
      ...used.map((door) => bannerLine(door, `${doors[door].variant} (${doors[door].remark})`)),
      ...tasksLines(doors),
      ...workersLines(doors),
      ...warnings.map((warning) => bannerLine("warning", warning))
    ].join("\n")
  )
}

const tasksLines = ({ role, tasks }: Doors): ReadonlyArray<string> => {
  switch (tasks._tag) {
    case "None":
      return role === "all"
        ? [bannerLine("tasks", "none: --tasks ./tasks.ts runs those of a module, --example shows an example's")]
        : []
    case "Example":
      return [bannerLine("tasks", "the example's")]
    case "Module":
      return [bannerLine("tasks", tasks.path)]
  }
}

const workersLines = ({ workers }: Doors): ReadonlyArray<string> =>
  workers === 1
    ? []
    : [bannerLine("workers", `${workers} processes; kill -HUP ${process.pid} restarts them one after another`)]

const unusedWorkers = ({ role }: Doors, { workers }: Settings): ReadonlyArray<UnreadVariables.UnreadVariable> =>
  role !== "gateway" && Option.isSome(workers) ? [UnreadVariables.unusedWorkers] : []

const isDatabaseKept = ({ dataDirectory, database }: Doors): boolean =>
  database.variant === "postgres" || Option.isSome(dataDirectory)

const realServers = ["postgres", "ioredis", "amqp"]

const unusedDataDirectory = (doors: Doors): ReadonlyArray<UnreadVariables.UnreadVariable> =>
  Option.isSome(doors.dataDirectory) &&
  doors.used.every((door) => door === "upstream" || realServers.includes(doors[door].variant))
    ? [UnreadVariables.unusedDataDirectory]
    : []

const serviceKeyVariable = (name: string) => name.replace("BASE_URL", "SERVICE_KEY")

export const announceListener = (name: string, url: string) => Console.log(bannerLine(name, url))

/** Describes a failure without the URLs of database and broker, because a URL may contain a password. */
export const describeFailure = (error: unknown): string => {
  if (error instanceof StartRefused) return error.message
  if (SqlError.isSqlError(error)) return `The database (DATABASE_URL) cannot be used: ${reasonOf(error)}`
  if (error instanceof Migrator.MigrationError) return `The migration of the database failed: ${error.message}`
  if (error instanceof RedisError) return `Redis (REDIS_URL) cannot be used: ${error.message}`
  if (error instanceof BrokerError) return `The broker (RABBITMQ_URL) cannot be used: ${error.message}`
  if (error instanceof ListenerRefused) return describeRefusedListener(error)
  return messageOf(error)
}

const describeRefusedListener = ({ address: { variable }, cause }: ListenerRefused): string =>
  `A listener cannot open: ${messageOf(cause)}.${variable === undefined ? "" : ` Set ${variable} to another address.`}`

/** The driver's message is only "failed to connect". The cause has the message of the server or the system. */
const reasonOf = ({ message, reason }: SqlError.SqlError): string =>
  (reason.cause instanceof Error && reason.cause.message) || (reason.message ?? message)

/** Some errors, such as `ServeError` of Effect, have no message of their own. */
export const messageOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error.message !== "") return error.message
  return error.cause === undefined ? error.name : `${error.name}: ${messageOf(error.cause)}`
}
