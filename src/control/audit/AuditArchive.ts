import { Context, type DateTime, Effect, Layer, Schema, DateTime as Time } from "effect"
import { Database } from "../../services/Database.ts"
import type { ChainedEvent } from "../../state/AuditLog.ts"
import type { ChainFault } from "../api/AuditApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { Count, computedRows, type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import { type Actor, Audit, Mutation, Snapshots } from "./Audit.ts"
import { type ChainLink, linkedEvents, verifyLinks } from "./AuditChain.ts"

/** Events of one file: further ones go to the next. Their deletion is one statement. */
export const maxEventsPerFile = 100_000

/** Events in memory at once. */
const batchSize = 500

/** What is said of an archive in the event that cuts it off. */
export const ArchiveRecord = Schema.Struct({
  /** The last event in the file. */
  through: Schema.Int,
  hash: Schema.String,
  events: Schema.Int,
  /** Of the file, in hex. */
  file_sha256: Schema.String
})
export type ArchiveRecord = typeof ArchiveRecord.Type

/** The events of an archive, before it is written. */
export interface ArchiveRange {
  /** The last event of the archive before. */
  readonly start: ChainLink
  /** The last event to be archived. */
  readonly through: number
}

/**
 * Moves the beginning of the audit log into a file: the file first, then the cut, which is itself an event of the log and
 * names the last event that was cut off and the file's digest.
 */
export class AuditArchive extends Context.Service<
  AuditArchive,
  {
    /** What is older than `before`, as far as one file takes it; none where nothing is. */
    readonly part: (before: DateTime.Utc) => Effect.Effect<ArchiveRange | undefined, StoreFailure>
    /** Hands the events of a part to `write`, in their order and as the log has them, and answers where they end. */
    readonly read: <E, R>(
      part: ArchiveRange,
      write: (events: ReadonlyArray<ChainedEvent & { readonly hash: Uint8Array }>) => Effect.Effect<void, E, R>
    ) => Effect.Effect<ChainLink | ChainFault, E | StoreFailure, R>
    readonly cut: (
      part: ArchiveRange,
      archived: ArchiveRecord
    ) => Effect.Effect<void, Refused<"configuration_changed"> | StoreFailure, Actor>
  }
>()("svc/control/AuditArchive") {
  static readonly layer = Layer.suspend(() => Layer.effect(AuditArchive, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit

  const part = Effect.fn("AuditArchive.part")(function* (before: DateTime.Utc) {
    // Numbers follow the commits, and times the beginnings: the first event that is young enough ends the part.
    const [found] = yield* rangeRows.all(sql`
      SELECT archived_sequence AS sequence, archived_hash AS hash, least(
        coalesce((SELECT min(audit_events.sequence) - 1 FROM audit_events WHERE created_at >= ${Time.toDateUtc(before)}),
          audit_chain.sequence),
        archived_sequence + ${maxEventsPerFile}::bigint) AS through
      FROM audit_chain`)
    if (found === undefined || found.through <= found.sequence) return undefined
    const { through, ...start } = found
    return { start, through }
  }, toStoreFailures)

  const read: AuditArchive["Service"]["read"] = Effect.fnUntraced(function* ({ start, through }, write) {
    let link = start
    while (link.sequence < through) {
      const upTo = Math.min(through, link.sequence + batchSize)
      const events = yield* toStoreFailures(linkedEvents(sql, link.sequence, upTo))
      const followed = verifyLinks(link, events, upTo)
      if ("fault" in followed) return followed
      yield* write(events)
      link = followed
    }
    return link
  })

  const cut = Effect.fn("AuditArchive.cut")(({ start, through }: ArchiveRange, archived: ArchiveRecord) =>
    audit.mutate(
      Effect.gen(function* () {
        const { write } = yield* Mutation
        // before the head is locked, which every change waits for
        yield* write`DELETE FROM audit_events WHERE sequence <= ${through}`
        const moved = yield* write`
          UPDATE audit_chain SET archived_sequence = ${through}, archived_hash = decode(${archived.hash}, 'hex')
          WHERE archived_sequence = ${start.sequence} RETURNING 1`
        if (moved.length === 0) return yield* archivedMeanwhile
        return {
          result: undefined,
          auditAction: { target: "audit_log", action: "audit:archive" },
          targetId: String(through),
          snapshots: yield* snapshots(null, archived),
          changes: []
        }
      })
    )
  )

  return AuditArchive.of({ part, read, cut })
})

const archivedMeanwhile = new ControlError(
  "configuration_changed",
  "Another archive was made meanwhile. Nothing was cut off."
)
const snapshots = Snapshots.of(ArchiveRecord)
const rangeRows = computedRows(Schema.Struct({ sequence: Count, hash: Schema.Uint8Array, through: Count }))
