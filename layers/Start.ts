import { Console, Data, Effect, Layer, Option, Redacted, Runtime } from "effect"
import { Migrator, SqlError } from "effect/sql"
import * as OperatorTokens from "../src/control/operators/OperatorTokens.ts"
import { seededLimits } from "../src/policy/routes/CanonicalRoute.ts"
import { BrokerError } from "../src/services/Broker.ts"
import { RedisError } from "../src/services/Redis.ts"
import { Vault } from "../src/state/Vault.ts"
import { type Doors, usedBy } from "./Doors.ts"
import type { Address, Settings } from "./Environment.ts"
import * as Migrations from "./postgres/Migrations.ts"

/** A start that cannot be, in words for whoever typed the command. */
export class StartRefused extends Data.TaggedError("StartRefused")<{ readonly message: string }> {
  /** `EX_CONFIG`: trying again will not help. */
  override readonly [Runtime.errorExitCode] = 78
}

/** A listener that could not open, because its port is taken or its address is not this machine's. */
export class ListenerRefused extends Data.TaggedError("ListenerRefused")<{
  readonly address: Address
  readonly cause: unknown
}> {}

const line = (name: string, text: string) => `  ${name.padEnd(10)}${text}`

/** What runs on what, and what will be lost. */
export const banner = (doors: Doors, settings: Settings): Effect.Effect<void> => {
  const used = usedBy(doors)
  const warnings = [
    ...(used.includes("database") && doors.database.variant === "postgres" && Option.isNone(settings.encryptionKey)
      ? ["GATEWAY_ENCRYPTION_KEY is not set: upstream credentials are stored as they are"]
      : []),
    ...(used.includes("upstream") && doors.role !== "control" && doors.upstream.variant === "http"
      ? Object.values(settings.upstreams)
          .flatMap(Option.toArray)
          .filter(({ serviceKey }) => Option.isNone(serviceKey))
          .map(
            ({ name }) =>
              `${keyOf(name)} is not set: a request needs a credential of its key, its project or the provider`
          )
      : []),
    ...settings.unread.map((variable) => `${variable} is set, and nothing reads it`)
  ]
  return Console.log(
    [
      `svc-runtime, role ${doors.role}`,
      ...used.map((door) => line(door, `${doors[door].variant} (${doors[door].remark})`)),
      ...(doors.role === "all" && !doors.example
        ? [line("example", "off: with real servers it runs where it is asked for, by --example")]
        : []),
      ...warnings.map((warning) => line("warning", warning))
    ].join("\n")
  )
}

const keyOf = (name: string) => name.replace("BASE_URL", "SERVICE_KEY")

/** The schema, then exactly one operator token; a generated one is shown here and never again. */
export const prepare = (settings: Settings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* Migrations.runWith({ ...seededLimits, ...settings.routeLimits })
      yield* besideNewer(yield* Migrations.newer)
      const generated = yield* OperatorTokens.bootstrap(settings.adminToken)
      if (Option.isSome(generated)) yield* Console.log(`svc-runtime operator token: ${Redacted.value(generated.value)}`)
      if (Option.isSome(settings.adminToken) && !(yield* OperatorTokens.isActive(settings.adminToken.value))) {
        yield* warning(ignoredAdminToken)
      }
    })
  )

/**
 * Two versions work side by side during a rolling upgrade, and the older one may come back: it starts beside a newer
 * schema and says so, unless a migration's name says that it cannot work with it.
 */
const besideNewer = Effect.fnUntraced(function* (newer: ReadonlyArray<Migrations.Newer>) {
  if (newer.length === 0) return
  const named = newer.map(({ id, name }) => `${String(id).padStart(4, "0")}_${name}`).join(", ")
  if (newer.some(Migrations.isIncompatible)) {
    return yield* new StartRefused({
      message: `The database has been brought up to a version that this one cannot work with (${named}). Start the newer version, or restore a backup from before the upgrade.`
    })
  }
  const sentence = `The database is of a newer version (${named}). This one works beside it; what it cannot decode is switched off, and readiness then says degraded.`
  yield* warning(sentence)
})

const warning = (sentence: string) =>
  Effect.andThen(Console.log(line("warning", sentence)), Effect.logWarning(sentence))

const ignoredAdminToken =
  "GATEWAY_ADMIN_TOKEN was ignored, and opens nothing: another operator token is active. Where that one is lost, `operator-token create` makes one."

/** Seals under the key, and opens what is sealed under it or the one before. */
export const vault = ({ encryptionKey, previousEncryptionKey }: Settings) =>
  Vault.layer(encryptionKey, previousEncryptionKey)

/** Says where a listener can be reached. */
export const announce = (name: string, url: string) => Console.log(`  ${name.padEnd(10)}${url}`)

/** One sentence for a start that failed, without the URL that may hold a password. */
export const describe = (error: unknown): string => {
  if (error instanceof StartRefused) return error.message
  if (SqlError.isSqlError(error)) return `The database (DATABASE_URL) cannot be used: ${reasonOf(error)}`
  if (error instanceof Migrator.MigrationError) return `The database cannot be brought up to date: ${error.message}`
  if (error instanceof RedisError) return `Redis (REDIS_URL) cannot be used: ${error.message}`
  if (error instanceof BrokerError) return `The broker (RABBITMQ_URL) cannot be used: ${error.message}`
  if (error instanceof ListenerRefused) return refusedListener(error)
  if (error instanceof OperatorTokens.MalformedAdminToken) return error.message
  return messageOf(error)
}

const refusedListener = ({ address: { variable }, cause }: ListenerRefused): string =>
  `A listener cannot open: ${messageOf(cause)}.${variable === undefined ? "" : ` ${variable} can give it another address.`}`

/** The driver says no more than "failed to connect"; why is in what the server or the system said. */
const reasonOf = ({ message, reason }: SqlError.SqlError): string =>
  (reason.cause instanceof Error && reason.cause.message) || (reason.message ?? message)

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
