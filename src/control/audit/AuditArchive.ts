import { Context, type DateTime, Effect, Layer, Schema, DateTime as Time } from "effect"
import { Database } from "../../services/Database.ts"
import type { ChainedEvent } from "../../state/AuditLog.ts"
import type { ChainFault } from "../api/AuditApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { Count, computedRows, type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import { type Actor, Audit, Snapshots } from "./Audit.ts"
import { type ChainLink, linkedEvents, verifyLinks } from "./AuditChain.ts"

/** The maximum number of events in one archive file. One statement deletes all of them. */
export const maxEventsPerFile = 100_000

const batchSize = 500

/** The audit event of an archive contains this description of the archive file. */
export const ArchiveRecord = Schema.Struct({
  through: Schema.Int,
  hash: Schema.String,
  events: Schema.Int,
  file_sha256: Schema.String
})
export type ArchiveRecord = typeof ArchiveRecord.Type

interface ArchiveRange {
  readonly start: ChainLink
  readonly through: number
}

/**
 * Moves the oldest events of the audit log into a file. The file is written first. Then the events are deleted, and an
 * audit event records the last deleted event and the digest of the file.
 */
export class AuditArchive extends Context.Service<
  AuditArchive,
  {
    /** Selects the oldest events before `before`, as many as fit into one file. `undefined` means no events. */
    readonly part: (before: DateTime.Utc) => Effect.Effect<ArchiveRange | undefined, StoreFailure>
    /** Verifies the selected events and passes them to `write` in order. Returns the last event or the first fault. */
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
    // Sequence numbers follow the order of commits, but `created_at` is the start of a transaction. A later event can
    // therefore have an earlier time. The range ends before the first event that is not older than `before`.
    const [range] = yield* rangeRows.all(sql`
      SELECT archived_sequence AS sequence, archived_hash AS hash, least(
        coalesce((SELECT min(audit_events.sequence) - 1 FROM audit_events WHERE created_at >= ${Time.toDateUtc(before)}),
          audit_chain.sequence),
        archived_sequence + ${maxEventsPerFile}::bigint) AS through
      FROM audit_chain`)
    if (range === undefined || range.through <= range.sequence) return undefined
    const { through, ...start } = range
    return { start, through }
  }, toStoreFailures)

  const read: AuditArchive["Service"]["read"] = Effect.fnUntraced(function* ({ start, through }, write) {
    let link = start
    while (link.sequence < through) {
      const upTo = Math.min(through, link.sequence + batchSize)
      const events = yield* toStoreFailures(linkedEvents(sql, link.sequence, upTo))
      const verified = verifyLinks(link, events, upTo)
      if ("fault" in verified) return verified
      yield* write(events)
      link = verified
    }
    return link
  })

  const cut = Effect.fn("AuditArchive.cut")(({ start, through }: ArchiveRange, archived: ArchiveRecord) =>
    audit.mutate(function* ({ write }) {
      // The delete runs first, because the update locks a row that every other change needs.
      yield* write`DELETE FROM audit_events WHERE sequence <= ${through}`
      const updated = yield* write`
        UPDATE audit_chain SET archived_sequence = ${through}, archived_hash = decode(${archived.hash}, 'hex')
        WHERE archived_sequence = ${start.sequence} RETURNING 1`
      if (updated.length === 0) return yield* archivedMeanwhile
      return {
        result: undefined,
        auditAction: { target: "audit_log", action: "audit:archive" },
        targetId: String(through),
        snapshots: yield* snapshots(null, archived),
        changes: []
      }
    })
  )

  return AuditArchive.of({ part, read, cut })
})

const archivedMeanwhile = new ControlError(
  "configuration_changed",
  "Another process archived these events at the same time, so nothing was deleted. Run the command again."
)
const snapshots = Snapshots.of(ArchiveRecord)
const rangeRows = computedRows(Schema.Struct({ sequence: Count, hash: Schema.Uint8Array, through: Count }))
