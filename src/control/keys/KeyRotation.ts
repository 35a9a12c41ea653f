import type { Redacted } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import * as Secret from "../../state/Secret.ts"
import { columnsOf, keyRows } from "./KeyRows.ts"

/** Writes a new secret. The old one still works for `graceSeconds` seconds. `write` comes from `Audit.mutate`. */
export const replaceSecret = (write: SqlClient, id: string, raw: Redacted.Redacted, graceSeconds: number) =>
  keyRows.only(write`
    UPDATE api_keys SET key_prefix = ${Secret.displayPrefix(raw)}, key_hash = ${Secret.digest(raw)}, rotation_due_at = NULL,
      previous_key_hash = CASE WHEN ${graceSeconds}::int > 0 THEN key_hash END,
      previous_key_expires_at = CASE WHEN ${graceSeconds}::int > 0 THEN now() + ${graceSeconds}::int * interval '1 second' END,
      updated_at = now()
    WHERE id = ${id} RETURNING ${columnsOf(write)}`)
