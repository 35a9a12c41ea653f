import { Context, Effect, Layer, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { Database } from "../../services/Database.ts"
import { type ChainedEvent, hashOf } from "../../state/AuditLog.ts"
import type { AuditVerification, ChainFault } from "../api/AuditApi.ts"
import { micros } from "../store/Paging.ts"
import { Count, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"

/** A SHA-256 hash, in the type that the database driver reads and writes. */
const Hash = Schema.Uint8Array

/** A verified event of the chain. `sequence` 0 means the start of the chain, before the first event. */
export interface ChainLink {
  readonly sequence: number
  readonly hash: Uint8Array
}

export const toHex = (hash: Uint8Array): string => Buffer.from(hash).toString("hex")

const hashesEqual = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0

/** Verifies that `events` follow `link` without gaps up to `last`. Returns the last event or the first fault. */
export const verifyLinks = (
  link: ChainLink,
  events: ReadonlyArray<ChainedEvent & { readonly hash: Uint8Array }>,
  last: number
): ChainLink | ChainFault => {
  let previous = link
  for (const event of events) {
    const expected = previous.sequence + 1
    if (event.sequence > expected) return { sequence: expected, event_id: null, fault: "missing" }
    if (event.sequence < expected) return { sequence: event.sequence, event_id: event.id, fault: "repeated" }
    if (!hashesEqual(event.previousHash, previous.hash))
      return { sequence: expected, event_id: event.id, fault: "not_linked" }
    if (!hashesEqual(event.hash, hashOf(event))) return { sequence: expected, event_id: event.id, fault: "changed" }
    previous = { sequence: event.sequence, hash: event.hash }
  }
  return previous.sequence < last ? { sequence: previous.sequence + 1, event_id: null, fault: "missing" } : previous
}

export const linkedEvents = (sql: SqlClient, after: number, last: number) =>
  eventRows.all(sql`
    SELECT sequence, hash, previous_hash AS "previousHash", id, ${micros(sql, "audit_events")},
      actor_token_id AS "actorTokenId", action, target_type AS "targetType", target_id AS "targetId",
      before_json::text AS before, after_json::text AS after, request_id AS "requestId", ip, user_agent AS "userAgent"
    FROM audit_events WHERE sequence > ${after} AND sequence <= ${last} ORDER BY sequence`)

const batchSize = 500

const defaultLimit = 5000

/**
 * Verifies that the audit log is unchanged since `Audit` wrote it. A changed, removed, inserted or moved event breaks
 * the hash chain. The head (a row with the number and hash of the last event) reveals events that were removed at the
 * end. Somebody who can write to both tables can forge both, so keep a copy of the head elsewhere.
 */
export class AuditChain extends Context.Service<
  AuditChain,
  {
    /** Verifies up to `limit` events after number `after`. The events up to `after` are not verified again. */
    readonly verify: (part: {
      readonly after?: number
      readonly limit?: number
    }) => Effect.Effect<AuditVerification, StoreFailure>
    readonly hashAt: (sequence: number) => Effect.Effect<string | undefined, StoreFailure>
  }
>()("svc/control/AuditChain") {
  static readonly layer = Layer.suspend(() => Layer.effect(AuditChain, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database

  const chainStart = linkRows.first(sql`SELECT archived_sequence AS sequence, archived_hash AS hash FROM audit_chain`)

  const linkAt = Effect.fnUntraced(function* (sequence: number) {
    const begins = yield* chainStart
    if (sequence === begins?.sequence) return begins
    return yield* linkRows.first(sql`SELECT sequence, hash FROM audit_events WHERE sequence = ${sequence}`)
  })

  // One statement reads all values at the same moment. Events that are appended later are not verified.
  const head = headRows.first(sql`
    SELECT sequence, hash, (
      SELECT count(*) FROM audit_events
      WHERE audit_events.sequence > audit_chain.sequence OR audit_events.sequence <= archived_sequence
        OR audit_events.sequence IS NULL
    ) AS outside, archived_sequence, archived_hash, archived_sequence = 0 OR EXISTS (
      SELECT 1 FROM audit_events WHERE action = 'audit:archive' AND target_id = archived_sequence::text
        AND after_json->>'hash' = encode(archived_hash, 'hex')
    ) AS announced FROM audit_chain`)

  const verify = Effect.fnUntraced(function* ({ after = 0, limit = defaultLimit }) {
    const end = yield* head
    const headOf = ({ hash, sequence }: ChainLink) => ({ sequence, hash: toHex(hash) })
    const archivedOf = ({ archived_hash, archived_sequence }: typeof Head.Type) =>
      archived_sequence === 0 ? null : { sequence: archived_sequence, hash: toHex(archived_hash) }
    const broken = (fault: ChainFault): AuditVerification => ({
      intact: false,
      verified_through: fault.sequence - 1,
      next_after: null,
      head: end === undefined ? null : headOf(end),
      archived: end === undefined ? null : archivedOf(end),
      fault
    })
    if (end === undefined) return broken({ sequence: 1, event_id: null, fault: "no_head" })
    const begins = end.archived_sequence
    if (!end.announced) return broken({ sequence: begins + 1, event_id: null, fault: "not_archived" })
    const from = Math.min(Math.max(after, begins), end.sequence)
    const first = yield* linkAt(from)
    if (first === undefined) return broken({ sequence: from, event_id: null, fault: "missing" })
    const last = Math.min(end.sequence, from + limit)
    let link: ChainLink = first
    while (link.sequence < last) {
      const upTo = Math.min(last, link.sequence + batchSize)
      const verified: ChainLink | ChainFault = verifyLinks(link, yield* linkedEvents(sql, link.sequence, upTo), upTo)
      if ("fault" in verified) return broken(verified)
      link = verified
    }
    if (link.sequence === end.sequence && !hashesEqual(link.hash, end.hash)) {
      return broken({ sequence: end.sequence, event_id: null, fault: "not_the_head" })
    }
    if (end.outside > 0) return broken({ sequence: end.sequence + 1, event_id: null, fault: "behind_the_head" })
    const verification: AuditVerification = {
      intact: true,
      verified_through: link.sequence,
      next_after: link.sequence < end.sequence ? link.sequence : null,
      head: headOf(end),
      archived: archivedOf(end),
      fault: null
    }
    return verification
  })

  return AuditChain.of({
    verify: Effect.fn("AuditChain.verify")(verify, toStoreFailures),
    hashAt: Effect.fn("AuditChain.hashAt")(function* (sequence) {
      const link = yield* toStoreFailures(linkAt(sequence))
      return link && toHex(link.hash)
    })
  })
})

const Text = Schema.NullOr(Schema.String)

const eventRows = storedRows(
  Schema.Struct({
    sequence: Count,
    hash: Hash,
    previousHash: Hash,
    id: Schema.String,
    micros: Count,
    actorTokenId: Text,
    action: Schema.String,
    targetType: Schema.String,
    targetId: Schema.String,
    before: Text,
    after: Text,
    requestId: Schema.String,
    ip: Text,
    userAgent: Text
  }),
  { table: "audit_events", key: ["sequence"] }
)
const linkRows = storedRows(Schema.Struct({ sequence: Count, hash: Hash }), {
  table: "audit_events",
  key: ["sequence"]
})
const Head = Schema.Struct({
  sequence: Count,
  hash: Hash,
  outside: Count,
  archived_sequence: Count,
  archived_hash: Hash,
  announced: Schema.Boolean
})
const headRows = storedRows(Head, {
  table: "audit_chain",
  key: []
})
