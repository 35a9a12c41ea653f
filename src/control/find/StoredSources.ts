import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import type { Scope } from "../api/schema/Security.ts"
import { computedRows } from "../store/Rows.ts"
import type { FindSource } from "./FindSource.ts"

const most = 5

/** Finds what is stored in PostgreSQL. Each statement reads an index. */
export const make = (sql: SqlClient): ReadonlyArray<FindSource> => {
  const source = (
    kind: FindSource["kind"],
    scopes: ReadonlyArray<Scope>,
    path: (id: string) => string,
    rowsOf: (id: string) => Fragment | undefined,
    since: Fragment
  ): FindSource => ({
    kind,
    scopes,
    find: (id) => {
      const rows = rowsOf(id)
      return rows === undefined
        ? Effect.succeed([])
        : Effect.map(foundRows.all(sql`${rows} LIMIT ${most}`.unprepared), (found) =>
            found.map((row) => ({ ...row, path: path(row.id) }))
          )
    },
    since: Effect.map(sinceRows.first(sql`${since}`), (row) => row?.since ?? null)
  })
  const everything = sql`SELECT NULL::timestamptz AS since`
  const oldestEvent = sql`SELECT created_at AS since FROM usage_events ORDER BY created_at, id LIMIT 1`
  const byId = (id: string) => (isUuid(id) ? sql`OR id = ${id}::uuid` : sql``)

  return [
    source(
      "request",
      ["usage:read"],
      (id) => `/admin-ui/admin/debug-bundles/${encodeURIComponent(id)}`,
      (id) => sql`SELECT request_id AS id, concat_ws(', ', route, model, status_code) AS title, created_at AS at
        FROM usage_events WHERE request_id = ${id} ORDER BY created_at DESC`,
      oldestEvent
    ),
    source(
      "session",
      ["usage:read"],
      (id) => `/admin-ui/admin/usage/events?session_id=${encodeURIComponent(id)}`,
      (id) => sql`SELECT session_id AS id, concat_ws(', ', client, model) AS title, created_at AS at FROM (
        SELECT session_id, client, model, created_at FROM usage_events WHERE session_id = ${id}
        ORDER BY created_at DESC LIMIT 1) AS latest`,
      oldestEvent
    ),
    source(
      "key",
      ["operators:manage"],
      (id) => `/admin-ui/admin/keys/${id}`,
      (id) => sql`SELECT id::text AS id, coalesce(name, key_prefix) AS title, created_at AS at
        FROM api_keys WHERE key_prefix = ${id} ${byId(id)} ORDER BY created_at DESC`,
      everything
    ),
    source(
      "project",
      ["operators:manage"],
      (id) => `/admin-ui/admin/projects/${id}`,
      (id) => sql`SELECT id::text AS id, name AS title, created_at AS at FROM projects WHERE name = ${id} ${byId(id)}`,
      everything
    ),
    source(
      "audit_event",
      ["audit:read"],
      (id) => `/admin-ui/admin/audit-events?sequence=${id}`,
      (id) =>
        isUuid(id)
          ? sql`${auditEvent(sql)} WHERE id = ${id}::uuid`
          : isSequence(id)
            ? sql`${auditEvent(sql)} WHERE sequence = ${id}::bigint`
            : undefined,
      sql`SELECT created_at AS since FROM audit_events ORDER BY sequence LIMIT 1`
    )
  ]
}

const auditEvent = (sql: SqlClient) =>
  sql`SELECT sequence::text AS id, concat_ws(', ', action, target_id) AS title, created_at AS at FROM audit_events`

const isUuid = (id: string): boolean => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)
/** Numbers of audit events are below 2^53. */
const isSequence = (id: string): boolean => /^[1-9]\d{0,14}$/.test(id)

const foundRows = computedRows(
  Schema.Struct({ id: Schema.String, title: Schema.String, at: Schema.DateTimeUtcFromDate })
)
const sinceRows = computedRows(Schema.Struct({ since: Schema.NullOr(Schema.DateTimeUtcFromDate) }))
