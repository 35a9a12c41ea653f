import { createHash } from "node:crypto"
import { Console, type DateTime, Effect, FileSystem, Schema, Stream } from "effect"
import type { ChainFault } from "../../src/control/api/AuditApi.ts"
import { ControlError } from "../../src/control/api/schema/Errors.ts"
import { Audit } from "../../src/control/audit/Audit.ts"
import { AuditArchive, maxEventsPerFile } from "../../src/control/audit/AuditArchive.ts"
import { type ChainLink, toHex, verifyLinks } from "../../src/control/audit/AuditChain.ts"
import type { Settings } from "../Environment.ts"
import * as DatabaseCommands from "./DatabaseCommands.ts"

const Text = Schema.NullOr(Schema.String)

/** One event of the archive, with every field that its hash covers. */
const ArchiveLine = Schema.Struct({
  sequence: Schema.Int,
  hash: Schema.Uint8ArrayFromHex,
  previousHash: Schema.Uint8ArrayFromHex,
  id: Schema.String,
  micros: Schema.Int,
  actorTokenId: Text,
  action: Schema.String,
  targetType: Schema.String,
  targetId: Schema.String,
  /** JSON as text, exactly as the database stores it, because the hash covers the text. */
  before: Text,
  after: Text,
  requestId: Schema.String,
  ip: Text,
  userAgent: Text
})
const ArchiveLineJson = Schema.fromJsonString(ArchiveLine)
const encodeLine = Schema.encodeEffect(ArchiveLineJson)
const decodeLine = Schema.decodeEffect(ArchiveLineJson)

/**
 * Moves the events before `before` from the audit log into a new file. If the command is interrupted, the log is still
 * complete.
 */
export const archive = Effect.fnUntraced(function* (settings: Settings, file: string, before: DateTime.Utc) {
  const files = yield* FileSystem.FileSystem
  yield* Effect.gen(function* () {
    const archives = yield* AuditArchive
    const part = yield* archives.part(before)
    if (part === undefined) return yield* Console.log("There are no events before that date; nothing was archived.")
    const digest = createHash("sha256")
    const lastLink = yield* Effect.gen(function* () {
      const handle = yield* files.open(file, { flag: "wx", mode: 0o600 })
      const end = yield* archives.read(part, (events) =>
        Effect.gen(function* () {
          const lines = yield* Effect.forEach(events, (event) => Effect.orDie(encodeLine(event)))
          const bytes = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""))
          digest.update(bytes)
          yield* handle.writeAll(bytes)
        })
      )
      if ("fault" in end)
        return yield* Effect.andThen(Effect.ignore(files.remove(file)), DatabaseCommands.brokenChain(end))
      yield* handle.sync
      return end
    }).pipe(
      Effect.scoped,
      Effect.catchTag("PlatformError", ({ message }) =>
        Effect.fail(
          new DatabaseCommands.CommandFailed({
            message: `${file} cannot be written (${message}). The audit log is unchanged. Choose a new file in a writable folder.`
          })
        )
      )
    )
    const file_sha256 = digest.digest("hex")
    const events = lastLink.sequence - part.start.sequence
    yield* archives.cut(part, { through: lastLink.sequence, hash: toHex(lastLink.hash), events, file_sha256 })
    yield* Console.log(
      `Moved ${events} events, up to ${lastLink.sequence}:${toHex(lastLink.hash)}, from the log into ${file}. SHA-256 of the file: ${file_sha256}`
    )
    if (events === maxEventsPerFile)
      yield* Console.log("There may be more events: run the command again with another file.")
  }).pipe(
    Effect.mapError((error) =>
      error instanceof ControlError ? new DatabaseCommands.CommandFailed({ message: error.message }) : error
    ),
    Effect.provide(AuditArchive.layer),
    Effect.provide([Audit.layer, DatabaseCommands.commandOperator("audit archive")]),
    (work) => DatabaseCommands.withDatabase(settings, work)
  )
})

/** Verifies the hash chain in the file, and prints the numbers and hashes at which it begins and ends. */
export const verifyArchive = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const unreadable = new DatabaseCommands.CommandFailed({
    message: `${file} is not an archive of the audit log, or it is damaged.`
  })
  const links = yield* files.stream(file).pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.filter((line) => line !== ""),
    Stream.mapEffect((line) => decodeLine(line)),
    Stream.mapError((error) =>
      error._tag === "PlatformError" && error.reason._tag === "NotFound"
        ? new DatabaseCommands.CommandFailed({ message: `${file} does not exist.` })
        : unreadable
    ),
    Stream.runFoldEffect(
      (): { readonly first: ChainLink | undefined; readonly last: ChainLink | undefined } => ({
        first: undefined,
        last: undefined
      }),
      ({ first, last }, event) =>
        Effect.gen(function* () {
          const previous = last ?? { sequence: event.sequence - 1, hash: event.previousHash }
          const next: ChainLink | ChainFault = verifyLinks(previous, [event], event.sequence)
          if ("fault" in next) return yield* DatabaseCommands.brokenChain(next)
          return { first: first ?? previous, last: next }
        })
    )
  )
  const { first, last } = links
  if (first === undefined || last === undefined) return yield* unreadable
  yield* Console.log(
    `The archive is intact: ${last.sequence - first.sequence} events, after ${first.sequence}:${toHex(first.hash)} and up to ${last.sequence}:${toHex(last.hash)}`
  )
})
