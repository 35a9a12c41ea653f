import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Cursor, Id, NextCursor, PageLimit, Timestamp } from "./Fields.ts"
import { requires } from "./Security.ts"

/** What an operator changed. `before` and `after` are the object as the API shows it: no secret is in them. */
export const AuditEvent = Schema.Struct({
  id: Id,
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

export const AuditApi = HttpApiGroup.make("audit-events")
  .add(
    HttpApiEndpoint.get("list", "/", {
      query: AuditQuery,
      success: HttpApiSchema.WithHeaders(Schema.Array(AuditEvent), NextCursor)
    }).annotateMerge(requires("audit:read"))
  )
  .prefix("/audit-events")
