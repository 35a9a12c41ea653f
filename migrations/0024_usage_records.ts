import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // NULL also in rows of older versions. Without defaults, no row is rewritten. "C": a prefix is a range of an index.
  `ALTER TABLE usage_events
    ADD COLUMN first_byte_ms integer,
    ADD COLUMN gateway_ms integer,
    ADD COLUMN subject text COLLATE "C",
    ADD COLUMN end_user text COLLATE "C",
    ADD COLUMN session_id text COLLATE "C",
    ADD COLUMN client text COLLATE "C"`,

  // Partial indexes: no older row is in them, and requests without these labels cost them nothing.
  `CREATE INDEX usage_events_by_subject ON usage_events (subject, created_at) WHERE subject IS NOT NULL`,
  `CREATE INDEX usage_events_by_end_user ON usage_events (end_user, created_at) WHERE end_user IS NOT NULL`,
  `CREATE INDEX usage_events_by_session ON usage_events (session_id, created_at) WHERE session_id IS NOT NULL`,

  // Clients and subjects are few enough for sums. Sessions and end users are read from the events.
  `ALTER TABLE usage_rollups ADD COLUMN client text COLLATE "C", ADD COLUMN subject text COLLATE "C"`,
  `CREATE INDEX usage_rollups_by_subject ON usage_rollups (subject, grain, bucket) WHERE subject IS NOT NULL`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
