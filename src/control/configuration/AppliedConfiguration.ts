import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { type AppliedConfiguration, maxChangesSince } from "../api/ConfigurationApi.ts"
import { applyAction, configuringActions } from "../audit/Audit.ts"
import { Count, computedRows } from "../store/Rows.ts"

/** Reads which document was applied last, and how many changes were made since. */
export const make = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const applied = yield* appliedRows.first(sql`
      SELECT sequence, created_at, coalesce((after_json->>'changes')::integer, 0) AS changes,
        (SELECT name FROM operator_tokens WHERE operator_tokens.id = actor_token_id) AS actor_name
      FROM audit_events WHERE action = ${applyAction} ORDER BY sequence DESC LIMIT 1`)
    if (applied === undefined) return { applied: null, changes_since: null }
    const { count } = yield* countRows.only(sql`SELECT count(*)::integer AS count FROM (
      SELECT 1 FROM audit_events WHERE sequence > ${applied.sequence} AND action = ANY(${configuringActions})
      LIMIT ${maxChangesSince}) AS later`)
    const { actor_name, changes, created_at, sequence } = applied
    const state: AppliedConfiguration = {
      applied: { sequence, at: created_at, by: actor_name, changes },
      changes_since: count
    }
    return state
  })

const appliedRows = computedRows(
  Schema.Struct({
    sequence: Count,
    created_at: Schema.DateTimeUtcFromDate,
    changes: Schema.Int,
    actor_name: Schema.NullOr(Schema.String)
  })
)
const countRows = computedRows(Schema.Struct({ count: Schema.Int }))
