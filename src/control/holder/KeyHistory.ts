import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { KeyHistoryEntry } from "../api/holder/KeyTest.ts"
import { computedRows, toStoreFailures } from "../store/Rows.ts"

const actions: Readonly<Record<string, KeyHistoryEntry["action"]>> = {
  "keys:create": "created",
  "keys:rotate": "rotated",
  "keys:rotate_by_holder": "rotated_by_holder",
  "keys:disable": "disabled",
  "keys:enable": "enabled"
}

const most = 50

/** Reads from the audit log what happened to the secret of a key, the newest first, and not who did it. */
export const readHistory = Effect.fn("readHistory")(
  (sql: SqlClient, keyId: string) =>
    Effect.map(
      // The conditions of the index must stand here as they do in its definition.
      rows.all(sql`SELECT created_at, action FROM audit_events WHERE target_id = ${keyId} AND target_type = 'key'
        AND action IN ('keys:create', 'keys:rotate', 'keys:rotate_by_holder', 'keys:disable', 'keys:enable')
        ORDER BY created_at DESC LIMIT ${most}`),
      (events) =>
        events.flatMap(({ action, created_at }): ReadonlyArray<KeyHistoryEntry> => {
          const known = actions[action]
          return known === undefined ? [] : [{ at: created_at, action: known }]
        })
    ),
  toStoreFailures
)

const rows = computedRows(Schema.Struct({ created_at: Schema.DateTimeUtcFromDate, action: Schema.String }))
