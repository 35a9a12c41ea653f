import { Context, type DateTime, Effect, Layer, Schema, DateTime as Time } from "effect"
import { Database } from "../../services/Database.ts"
import type { Linked } from "../../state/AuditLog.ts"
import type { ChainFault } from "../api/AuditApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { answers, Count, type StoreFailure, settled } from "../store/Store.ts"
import { type Actor, Audit, Mutation, Snapshots } from "./Audit.ts"
import { follow, type Link, linkedEvents } from "./AuditChain.ts"

/** Events of one file: further ones go to the next. Their deletion is one statement. */
export const mostEvents = 100_000

/** Events in memory at once. */
const batch = 500

/** What is said of an archive in the event that cuts it off. */
export const Archived = Schema.Struct({
  /** The last event in the file. */
  through: Schema.Int,
  hash: Schema.String,
  events: Schema.Int,
  /** Of the file, in hex. */
  file_sha256: Schema.String
})
export type Archived = typeof Archived.Type

/** The events of an archive, before it is written. */
export interface Part {
  /** The last event of the archive before. */
  readonly behind: Link
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
    readonly part: (before: DateTime.Utc) => Effect.Effect<Part | undefined, StoreFailure>
    /** Hands the events of a part to `write`, in their order and as the log has them, and answers where they end. */
    readonly read: <E, R>(
      part: Part,
      write: (events: ReadonlyArray<Linked & { readonly hash: Uint8Array }>) => Effect.Effect<void, E, R>
    ) => Effect.Effect<Link | ChainFault, E | StoreFailure, R>
    readonly cut: (
      part: Part,
      archived: Archived
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
    const [found] = yield* parts.all(sql`
      SELECT archived_sequence AS sequence, archived_hash AS hash, least(
        coalesce((SELECT min(audit_events.sequence) - 1 FROM audit_events WHERE created_at >= ${Time.toDateUtc(before)}),
          audit_chain.sequence),
        archived_sequence + ${mostEvents}::bigint) AS through
      FROM audit_chain`)
    if (found === undefined || found.through <= found.sequence) return undefined
    const { through, ...behind } = found
    return { behind, through }
  }, settled)

  const read: AuditArchive["Service"]["read"] = Effect.fnUntraced(function* ({ behind, through }, write) {
    let link = behind
    while (link.sequence < through) {
      const upTo = Math.min(through, link.sequence + batch)
      const events = yield* settled(linkedEvents(sql, link.sequence, upTo))
      const followed = follow(link, events, upTo)
      if ("fault" in followed) return followed
      yield* write(events)
      link = followed
    }
    return link
  })

  const cut = Effect.fn("AuditArchive.cut")(({ behind, through }: Part, archived: Archived) =>
    audit.mutate(
      Effect.gen(function* () {
        const { write } = yield* Mutation
        // before the head is locked, which every change waits for
        yield* write`DELETE FROM audit_events WHERE sequence <= ${through}`
        const moved = yield* write`
          UPDATE audit_chain SET archived_sequence = ${through}, archived_hash = decode(${archived.hash}, 'hex')
          WHERE archived_sequence = ${behind.sequence} RETURNING 1`
        if (moved.length === 0) return yield* archivedMeanwhile
        return {
          result: undefined,
          deed: { target: "audit_log", action: "audit:archive" },
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
const snapshots = Snapshots.of(Archived)
const parts = answers(Schema.Struct({ sequence: Count, hash: Schema.Uint8Array, through: Count }))
