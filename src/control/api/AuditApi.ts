import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Cursor, Id, NextCursor, PageLimit, RangeTime, Timestamp } from "./schema/Fields.ts"
import { operation, skipsUnreadable } from "./schema/Security.ts"

/** SHA-256, in hex. */
const Hash = Schema.String

/**
 * The record of a change by an operator. `before` and `after` contain the object without secrets. `sequence` counts
 * from 1 without gaps. `hash` covers every other field. `previous_hash` is the hash of the preceding event.
 */
export const AuditEvent = Schema.Struct({
  id: Id,
  sequence: Schema.Int,
  previous_hash: Hash,
  hash: Hash,
  actor_token_id: Schema.NullOr(Id),
  action: Schema.String,
  target_type: Schema.String,
  target_id: Schema.String,
  before: Schema.Json,
  after: Schema.Json,
  request_id: Schema.String,
  ip: Schema.NullOr(Schema.String),
  user_agent: Schema.NullOr(Schema.String),
  created_at: Timestamp
})
export type AuditEvent = typeof AuditEvent.Type

/**
 * An event with the names that its ids have now, which are not part of the hash. `actor_name` is that of the operator
 * token; `null` is a holder of a key, or a command. `target_name` is `null` for an object that is known by its id alone.
 */
export const ListedEvent = AuditEvent.pipe(
  Schema.fieldsAssign({ actor_name: Schema.NullOr(Schema.String), target_name: Schema.NullOr(Schema.String) })
)
export type ListedEvent = typeof ListedEvent.Type

const Text = Schema.optionalKey(Schema.String.check(Schema.isBetweenLength(1, 256)))

/** The sequences of events are below 2^53. */
const Sequence = Schema.NumberFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
)

/**
 * `from` is inclusive, `to` exclusive. `configuring=true` returns the changes of what a configuration document has, and
 * the applies of documents; `false` the other events. Every other filter is an exact match.
 */
export const AuditQuery = Schema.Struct({
  from: Schema.optionalKey(RangeTime),
  to: Schema.optionalKey(RangeTime),
  actor_token_id: Schema.optionalKey(Id),
  action: Text,
  target_type: Text,
  target_id: Text,
  sequence: Schema.optionalKey(Sequence),
  configuring: Schema.optionalKey(Schema.Literals(["true", "false"])),
  limit: Schema.optionalKey(PageLimit),
  cursor: Schema.optionalKey(Cursor)
})
export type AuditQuery = typeof AuditQuery.Type

/**
 * The first wrong event of the log. The head of the log is a row with the number and hash of the last event.
 *
 * - `missing`: no event has the number `sequence`. `repeated`: two events have this number.
 * - `not_linked`: the event lacks the hash of the preceding event. `changed`: its fields do not match its hash.
 * - `not_the_head`: the last event differs from the head. `behind_the_head`: there are events after the head.
 * - `no_head`: the head is missing. `not_archived`: no event records the archive at which the log begins.
 */
export const ChainFault = Schema.Struct({
  sequence: Schema.Int,
  event_id: Schema.NullOr(Id),
  fault: Schema.Literals([
    "missing",
    "repeated",
    "not_linked",
    "changed",
    "not_the_head",
    "behind_the_head",
    "no_head",
    "not_archived"
  ])
})
export type ChainFault = typeof ChainFault.Type

/** If `next_after` is not null, more events remain. Pass it as `after` in the next call. */
export const AuditVerification = Schema.Struct({
  intact: Schema.Boolean,
  verified_through: Schema.Int,
  next_after: Schema.NullOr(Schema.Int),
  /** The last event. Keep a copy elsewhere, because only a copy reveals that somebody rewrote the whole log. */
  head: Schema.NullOr(Schema.Struct({ sequence: Schema.Int, hash: Hash })),
  /** The last event that was moved to an archive. The log begins with the next event. */
  archived: Schema.NullOr(Schema.Struct({ sequence: Schema.Int, hash: Hash })),
  fault: Schema.NullOr(ChainFault)
})
export type AuditVerification = typeof AuditVerification.Type

export const AuditApi = HttpApiGroup.make("audit-events")
  .annotate(
    OpenApi.Description,
    "The log of all changes by operators. The events form a hash chain, so a changed row is detected."
  )
  .add(
    HttpApiEndpoint.get("list", "/", {
      query: AuditQuery,
      success: HttpApiSchema.WithHeaders(Schema.Array(ListedEvent), NextCursor)
    })
      .annotateMerge(operation("List audit events, newest first", "audit:read"))
      .annotateMerge(skipsUnreadable),
    HttpApiEndpoint.get("actions", "/actions", {
      success: Schema.Array(Schema.Struct({ target_type: Schema.String, actions: Schema.Array(Schema.String) }))
    })
      .annotateMerge(operation("List what the log can record", "audit:read"))
      .annotate(OpenApi.Description, "The values of the filters `target_type` and `action`."),
    HttpApiEndpoint.get("verification", "/verification", {
      query: {
        after: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))),
        limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 })))
      },
      success: AuditVerification
    })
      .annotateMerge(operation("Verify the chain of audit events", "audit:read"))
      .annotate(
        OpenApi.Description,
        "Verifies one page of the chain. Set `after` to the `next_after` of the response and repeat the call, until `next_after` is null."
      )
  )
  .prefix("/audit-events")
