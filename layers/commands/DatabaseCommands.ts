import { randomUUID } from "node:crypto"
import { Console, Data, Effect, Layer, Option, Predicate, Redacted, Runtime } from "effect"
import { SqlError } from "effect/sql"
import type { ChainFault } from "../../src/control/api/AuditApi.ts"
import { RequestId } from "../../src/control/api/schema/Errors.ts"
import { Operator } from "../../src/control/api/schema/Security.ts"
import { Audit } from "../../src/control/audit/Audit.ts"
import { AuditChain } from "../../src/control/audit/AuditChain.ts"
import * as SecretRotation from "../../src/control/audit/SecretRotation.ts"
import { OperatorTokens } from "../../src/control/operators/OperatorTokens.ts"
import { keyId } from "../../src/state/Vault.ts"
import * as DatabasePostgres from "../DatabasePostgres.ts"
import type { Settings } from "../Environment.ts"
import * as SessionName from "../postgres/SessionName.ts"
import * as Installation from "../roles/Installation.ts"
import * as Startup from "../Startup.ts"

/** The command failed, or its check found a problem. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{ readonly message: string }> {
  override readonly [Runtime.errorExitCode] = 1
}

/** Connects to `DATABASE_URL`. Commands never migrate the schema. Only a running service migrates it. */
export const withDatabase = Effect.fnUntraced(function* <A, E, R>(settings: Settings, work: Effect.Effect<A, E, R>) {
  if (Option.isNone(settings.databaseUrl)) {
    return yield* new Startup.StartRefused({
      message: "This command needs a database: set DATABASE_URL."
    })
  }
  return yield* work.pipe(
    Effect.provide(DatabasePostgres.layer({ url: settings.databaseUrl.value, name: SessionName.of(settings) })),
    Effect.catchDefect((defect) => (isSchemaOutdated(defect) ? Effect.fail(outdatedSchema) : Effect.die(defect)))
  )
})

/** PostgreSQL reports an unknown table as SQLSTATE 42P01, an unknown column as 42703. */
const isSchemaOutdated = (defect: unknown): boolean =>
  SqlError.isSqlError(defect) &&
  Predicate.hasProperty(defect.reason.cause, "code") &&
  (defect.reason.cause.code === "42P01" || defect.reason.cause.code === "42703")

const outdatedSchema = new CommandFailed({
  message: "The database schema does not match this version: start the service once to migrate it."
})

/** Verifies the whole hash chain of the audit log, and that the log contains the event `anchor`. */
export const verifyAudit = (settings: Settings, anchor: Option.Option<string>) =>
  withDatabase(
    settings,
    Effect.gen(function* () {
      const chain = yield* AuditChain
      let verified = yield* chain.verify({})
      while (verified.next_after !== null) verified = yield* chain.verify({ after: verified.next_after })
      if (verified.fault !== null || verified.head === null) return yield* brokenChain(verified.fault)
      const { hash, sequence } = verified.head
      if (Option.isSome(anchor)) yield* verifyAnchor(anchor.value, verified.archived?.sequence ?? 0)
      const { archived } = verified
      const archivedSuffix =
        archived === null ? "" : `; events up to ${archived.sequence}:${archived.hash} are archived`
      const events = sequence - (archived?.sequence ?? 0)
      yield* Console.log(`The audit log is intact: ${events} events, head ${sequence}:${hash}${archivedSuffix}`)
    }).pipe(Effect.provide(AuditChain.layer))
  )

const verifyAnchor = Effect.fnUntraced(function* (anchor: string, archived: number) {
  const [sequence, hash] = anchor.split(":")
  if (Number(sequence) < archived) {
    return yield* new CommandFailed({
      message: `The audit log is intact but no longer contains event ${sequence}, because events up to ${archived} are archived. Look for the event in the archive.`
    })
  }
  if ((yield* (yield* AuditChain).hashAt(Number(sequence))) !== hash) {
    return yield* new CommandFailed({
      message: `The audit log does not contain the expected event: event ${sequence} is missing or has another hash. The chain itself is intact, so the log was rewritten. Compare it with a backup.`
    })
  }
})

export const brokenChain = (fault: ChainFault | null) =>
  new CommandFailed({
    message:
      fault === null
        ? "The audit log is broken."
        : `The audit log is broken at event ${fault.sequence}${fault.event_id === null ? "" : ` (${fault.event_id})`}: ${faultDescriptions[fault.fault]}.`
  })

const faultDescriptions: Readonly<Record<ChainFault["fault"], string>> = {
  missing: "this event is missing",
  repeated: "its number occurs twice",
  not_linked: "it does not contain the hash of the previous event",
  changed: "its fields have been changed",
  not_the_head: "the head of the chain names another event as the last",
  behind_the_head: "the head of the chain names an earlier event as the last",
  no_head: "the head of the chain is missing",
  not_archived: "the log begins with this event, but no event records that earlier events were archived"
}

/**
 * Encrypts every secret again with `GATEWAY_ENCRYPTION_KEY`. Fails while processes without this key are connected,
 * because they could no longer read the secrets. `force` skips this check.
 */
export const rotateSecrets = Effect.fnUntraced(function* (settings: Settings, force: boolean) {
  if (Option.isNone(settings.encryptionKey)) {
    return yield* new Startup.StartRefused({
      message: 'GATEWAY_ENCRYPTION_KEY is not set. The command "secrets rotate" encrypts every secret with this key.'
    })
  }
  const id = keyId(settings.encryptionKey.value)
  const readable = Effect.gen(function* () {
    const sessions = force ? 0 : yield* SessionName.countWithoutKey(id)
    if (sessions > 0) return yield* new CommandFailed({ message: unreadyProcesses(sessions) })
  })
  const { kept, resealed } = yield* Effect.andThen(readable, SecretRotation.rotate).pipe(
    Effect.provide([Audit.layer, Installation.vault(settings), commandOperator("secrets rotate")]),
    Effect.catchTag("UnreadableSecret", ({ message }) =>
      Effect.fail(new CommandFailed({ message: `Nothing was changed: ${message}.` }))
    ),
    (rotation) => withDatabase(settings, rotation)
  )
  for (const [column, count] of Object.entries(resealed)) yield* Console.log(`${column}: ${count} re-encrypted`)
  yield* Console.log(`${kept} were already encrypted with GATEWAY_ENCRYPTION_KEY.`)
})

const unreadyProcesses = (sessions: number) =>
  `Nothing was changed: ${sessions === 1 ? "1 database session belongs" : `${sessions} database sessions belong`} to processes that do not have this GATEWAY_ENCRYPTION_KEY. They could no longer read the credentials, and their requests would fail. First give every process both the new key and the old one, or use --force.`

/** Creates a token with all scopes, for operators who have access to the database but no token. */
export const createOperatorToken = (settings: Settings, name: string) =>
  Effect.gen(function* () {
    const tokens = yield* OperatorTokens
    const { raw_token } = yield* tokens.create({ name, scopes: ["*"] })
    yield* Console.log(Redacted.value(raw_token))
  }).pipe(
    Effect.catchTag("ControlError", ({ message }) => Effect.fail(new CommandFailed({ message }))),
    Effect.provide(OperatorTokens.layer),
    Effect.provide([Audit.layer, commandOperator("operator-token create")]),
    (creation) => withDatabase(settings, creation)
  )

/** Audit events of commands name the command instead of an operator token. */
export const commandOperator = (command: string): Layer.Layer<Operator | RequestId> =>
  Layer.merge(
    Layer.succeed(Operator, { tokenId: null, scopes: ["*"], ip: null, userAgent: `svc-runtime ${command}` }),
    Layer.succeed(RequestId, randomUUID())
  )
