import { DateTime, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { UnusedKey, type UnusedQuery } from "../api/usage/UsageApi.ts"
import { storedRows } from "../store/Rows.ts"

const defaultLimit = 100

export const make = (sql: SqlClient) => ({
  /** Reads the keys without a request in the range. */
  read: ({ from, limit = defaultLimit, project_id, to }: UnusedQuery) =>
    keyRows.all(
      sql`SELECT id AS key_id, name, key_prefix, project_id, created_at, last_used_at FROM api_keys
        WHERE ${sql.and(project_id === undefined ? [] : [sql`project_id = ${project_id}`])}
          AND NOT EXISTS (SELECT 1 FROM usage_events WHERE ${sql.and([
            sql`key_id = api_keys.id`,
            ...(from === undefined ? [] : [sql`usage_events.created_at >= ${DateTime.toDateUtc(from)}`]),
            ...(to === undefined ? [] : [sql`usage_events.created_at < ${DateTime.toDateUtc(to)}`])
          ])})
          AND NOT EXISTS (SELECT 1 FROM usage_rollups WHERE ${sql.and([
            // The retention job may have deleted the usage records, but not their hourly sums.
            sql`key_id = api_keys.id AND grain = 'hour'`,
            ...(from === undefined ? [] : [sql`bucket >= ${DateTime.toDateUtc(from)}`]),
            ...(to === undefined ? [] : [sql`bucket + interval '1 hour' <= ${DateTime.toDateUtc(to)}`])
          ])})
        ORDER BY api_keys.created_at DESC, api_keys.id DESC LIMIT ${limit}`.unprepared
    )
})

const keyRows = storedRows(
  Schema.Struct({
    ...UnusedKey.fields,
    created_at: Schema.DateTimeUtcFromDate,
    last_used_at: Schema.NullOr(Schema.DateTimeUtcFromDate)
  }),
  { table: "api_keys", key: ["id"] }
)
