import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Cursor, Id, NextCursor, PageLimit, Timestamp } from "./schema/Fields.ts"
import { requires, skipsUnreadable } from "./schema/Security.ts"

/** SHA-256, in hex. */
const Hash = Schema.String

/**
 * What an operator changed. `before` and `after` are the object as the API shows it: no secret is in them. Events are
 * numbered from 1 without a gap; `hash` covers every field and `previous_hash`, which is the hash of the event before.
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

const Text = Schema.optionalKey(Schema.String.check(Schema.isBetweenLength(1, 256)))

export const AuditQuery = Schema.Struct({
  actor_token_id: Schema.optionalKey(Id),
  action: Text,
  target_type: Text,
  target_id: Text,
  limit: Schema.optionalKey(PageLimit),
  cursor: Schema.optionalKey(Cursor)
})
export type AuditQuery = typeof AuditQuery.Type

/**
 * The first event that is not what was written: `missing` (its number is not there), `repeated`, `not_linked` (it does
 * not carry the hash of the one before), `changed` (its hash is not that of its fields), `not_the_head` and
 * `behind_the_head` (the head of the chain and its last event are not the same), `no_head`, `not_archived` (the log
 * begins behind a number up to which no event says that events were archived).
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

/** `next_after`: events remain to be looked at; ask again with it as `after`. */
export const AuditVerification = Schema.Struct({
  intact: Schema.Boolean,
  verified_through: Schema.Int,
  next_after: Schema.NullOr(Schema.Int),
  /** Note it outside the database: a log that was rewritten as a whole no longer has it. */
  head: Schema.NullOr(Schema.Struct({ sequence: Schema.Int, hash: Hash })),
  /** The last event that was archived: the log begins behind it. */
  archived: Schema.NullOr(Schema.Struct({ sequence: Schema.Int, hash: Hash })),
  fault: Schema.NullOr(ChainFault)
})
export type AuditVerification = typeof AuditVerification.Type

export const AuditApi = HttpApiGroup.make("audit-events")
  .annotate(
    OpenApi.Description,
    "Who changed what, when and from where: a chain of events in which no row can be changed unseen."
  )
  .add(
    HttpApiEndpoint.get("list", "/", {
      query: AuditQuery,
      success: HttpApiSchema.WithHeaders(Schema.Array(AuditEvent), NextCursor)
    })
      .annotate(OpenApi.Summary, "List audit events, newest first")
      .annotateMerge(skipsUnreadable)
      .annotateMerge(requires("audit:read")),
    HttpApiEndpoint.get("verification", "/verification", {
      query: {
        after: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))),
        limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 })))
      },
      success: AuditVerification
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Verify the chain of audit events",
          description: "A page of the chain at a time: give the answer's `next_after` as `after` until it is null."
        })
      )
      .annotateMerge(requires("audit:read"))
  )
  .prefix("/audit-events")
