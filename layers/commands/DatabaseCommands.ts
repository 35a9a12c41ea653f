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
import * as Installation from "../roles/Installation.ts"
import * as SessionName from "../SessionName.ts"
import * as Startup from "../Startup.ts"

/** What was asked for was looked at, and is not so. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{ readonly message: string }> {
  override readonly [Runtime.errorExitCode] = 1
}

/** The installation's database. Commands leave its schema as it is: the services bring it up to date. */
export const withDatabase = Effect.fnUntraced(function* <A, E, R>(settings: Settings, work: Effect.Effect<A, E, R>) {
  if (Option.isNone(settings.databaseUrl)) {
    return yield* new Startup.StartRefused({
      message: "This command works on the database of an installation: set DATABASE_URL."
    })
  }
  return yield* work.pipe(
    Effect.provide(DatabasePostgres.layer({ url: settings.databaseUrl.value, name: SessionName.of(settings) })),
    Effect.catchDefect((defect) => (isSchemaOutdated(defect) ? Effect.fail(outdatedSchema) : Effect.die(defect)))
  )
})

/** SQLSTATE 42P01 and 42703: a table or a column is not there. */
const isSchemaOutdated = (defect: unknown): boolean =>
  SqlError.isSqlError(defect) &&
  Predicate.hasProperty(defect.reason.cause, "code") &&
  (defect.reason.cause.code === "42P01" || defect.reason.cause.code === "42703")

const outdatedSchema = new CommandFailed({
  message: "The database is not one of this version: start the service once, which brings it up to date."
})

/**
 * Goes through the whole chain, and compares it with `anchor`. Says so, or fails with the first event that is wrong.
 */
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
        archived === null ? "" : `, behind ${archived.sequence}:${archived.hash}, up to which they are archived`
      const events = sequence - (archived?.sequence ?? 0)
      yield* Console.log(`The audit log is intact: ${events} events, head ${sequence}:${hash}${archivedSuffix}`)
    }).pipe(Effect.provide(AuditChain.layer))
  )

const verifyAnchor = Effect.fnUntraced(function* (anchor: string, archived: number) {
  const [sequence, hash] = anchor.split(":")
  if (Number(sequence) < archived) {
    return yield* new CommandFailed({
      message: `The audit log is intact, and event ${sequence} is no longer in it: events up to ${archived} are archived. Compare it with the archive.`
    })
  }
  if ((yield* (yield* AuditChain).hashAt(Number(sequence))) !== hash) {
    return yield* new CommandFailed({
      message: `The audit log is not the one that was noted: event ${sequence} is gone, or has another hash. The chain is whole, so it was written anew from some event on.`
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
  missing: "it is not there",
  repeated: "there are two of this number",
  not_linked: "it does not carry the hash of the event before it",
  changed: "its fields are not those that were written",
  not_the_head: "the head of the chain names another last event",
  behind_the_head: "the chain ended before it",
  no_head: "the head of the chain is gone",
  not_archived: "the log begins with it, and no event says that those before it were archived"
}

/**
 * Seals every secret under `GATEWAY_ENCRYPTION_KEY`, and says how many. Not while processes are connected that could not
 * read what it seals, unless by force.
 */
export const rotateSecrets = Effect.fnUntraced(function* (settings: Settings, force: boolean) {
  if (Option.isNone(settings.encryptionKey)) {
    return yield* new Startup.StartRefused({
      message: "secrets rotate seals every secret under GATEWAY_ENCRYPTION_KEY, which is not set."
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
  for (const [column, count] of Object.entries(resealed)) yield* Console.log(`${column}: ${count} sealed anew`)
  yield* Console.log(`${kept} were sealed under GATEWAY_ENCRYPTION_KEY already.`)
})

const unreadyProcesses = (sessions: number) =>
  `Nothing was changed: ${sessions === 1 ? "1 database session belongs" : `${sessions} database sessions belong`} to processes that do not have this GATEWAY_ENCRYPTION_KEY. They could not read the credentials any more, and their requests would fail. Give every process the new key and the old one first. With --force the rotation goes on.`

/** Makes a token that may do everything, and prints it: for whoever has the database and has lost the tokens. */
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

/** Whom the audit log names for a change that a command makes. */
export const commandOperator = (command: string): Layer.Layer<Operator | RequestId> =>
  Layer.merge(
    Layer.succeed(Operator, { tokenId: null, scopes: ["*"], ip: null, userAgent: `svc-runtime ${command}` }),
    Layer.succeed(RequestId, randomUUID())
  )
