import { createHash } from "node:crypto"
import { Console, type DateTime, Effect, FileSystem, Schema, Stream } from "effect"
import type { ChainFault } from "../../src/control/api/AuditApi.ts"
import { ControlError } from "../../src/control/api/schema/Errors.ts"
import { Audit } from "../../src/control/audit/Audit.ts"
import { AuditArchive, mostEvents } from "../../src/control/audit/AuditArchive.ts"
import { follow, hex, type Link } from "../../src/control/audit/AuditChain.ts"
import type { Settings } from "../Environment.ts"
import * as OnDatabase from "./OnDatabase.ts"

const Text = Schema.NullOr(Schema.String)

/** A line of an archive: everything that the hash of an event covers, as it is hashed. */
const Line = Schema.Struct({
  sequence: Schema.Int,
  hash: Schema.Uint8ArrayFromHex,
  previousHash: Schema.Uint8ArrayFromHex,
  id: Schema.String,
  /** Microseconds since 1970. */
  micros: Schema.Int,
  actorTokenId: Text,
  action: Schema.String,
  targetType: Schema.String,
  targetId: Schema.String,
  /** JSON, in the database's own text. */
  before: Text,
  after: Text,
  requestId: Schema.String,
  ip: Text,
  userAgent: Text
})
const Lines = Schema.fromJsonString(Line)
const encodeLine = Schema.encodeEffect(Lines)
const decodeLine = Schema.decodeEffect(Lines)

/**
 * Writes the events from before `before` into `file`, which must not be there, and then cuts them off the log. What ends
 * it in between leaves the log whole.
 */
export const archive = Effect.fnUntraced(function* (settings: Settings, file: string, before: DateTime.Utc) {
  const files = yield* FileSystem.FileSystem
  yield* Effect.gen(function* () {
    const archives = yield* AuditArchive
    const part = yield* archives.part(before)
    if (part === undefined) return yield* Console.log("There is no event from before then: nothing was archived.")
    const digest = createHash("sha256")
    const written = yield* Effect.gen(function* () {
      const handle = yield* files.open(file, { flag: "wx", mode: 0o600 })
      const end = yield* archives.read(part, (events) =>
        Effect.gen(function* () {
          const lines = yield* Effect.forEach(events, (event) => Effect.orDie(encodeLine(event)))
          const bytes = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""))
          digest.update(bytes)
          yield* handle.writeAll(bytes)
        })
      )
      if ("fault" in end) return yield* Effect.andThen(Effect.ignore(files.remove(file)), OnDatabase.broken(end))
      yield* handle.sync
      return end
    }).pipe(
      Effect.scoped,
      Effect.catchTag("PlatformError", ({ message }) =>
        Effect.fail(
          new OnDatabase.CommandFailed({ message: `${file} cannot be written (${message}): nothing was cut off.` })
        )
      )
    )
    const file_sha256 = digest.digest("hex")
    const events = written.sequence - part.behind.sequence
    yield* archives.cut(part, { through: written.sequence, hash: hex(written.hash), events, file_sha256 })
    yield* Console.log(
      `${events} events, up to ${written.sequence}:${hex(written.hash)}, are in ${file} and no longer in the log. SHA-256 of the file: ${file_sha256}`
    )
    if (events === mostEvents) yield* Console.log("There may be more: run it again with another file.")
  }).pipe(
    Effect.mapError((error) =>
      error instanceof ControlError ? new OnDatabase.CommandFailed({ message: error.message }) : error
    ),
    Effect.provide(AuditArchive.layer),
    Effect.provide([Audit.layer, OnDatabase.author("audit archive")]),
    (work) => OnDatabase.withDatabase(settings, work)
  )
})

/** Whether the events of an archive are those that were written; prints where it begins and ends. */
export const verifyArchive = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const unreadable = new OnDatabase.CommandFailed({ message: `${file} is not an archive of the audit log.` })
  const links = yield* files.stream(file).pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.filter((line) => line !== ""),
    Stream.mapEffect((line) => decodeLine(line)),
    Stream.catch(() => Stream.fail(unreadable)),
    Stream.runFoldEffect(
      (): { readonly first: Link | undefined; readonly last: Link | undefined } => ({
        first: undefined,
        last: undefined
      }),
      ({ first, last }, event) =>
        Effect.gen(function* () {
          const behind = last ?? { sequence: event.sequence - 1, hash: event.previousHash }
          const followed: Link | ChainFault = follow(behind, [event], event.sequence)
          if ("fault" in followed) return yield* OnDatabase.broken(followed)
          return { first: first ?? behind, last: followed }
        })
    )
  )
  const { first, last } = links
  if (first === undefined || last === undefined) return yield* unreadable
  yield* Console.log(
    `The archive is intact: ${last.sequence - first.sequence} events, behind ${first.sequence}:${hex(first.hash)} and up to ${last.sequence}:${hex(last.hash)}`
  )
})
