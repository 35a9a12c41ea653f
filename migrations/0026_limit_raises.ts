import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // A later migration of the same transaction alters this table. To strengthen a lock later could be a deadlock with a
  // process that changes a key meanwhile.
  `LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE`,
  // Exceptions from the limits of single keys, each until a time. Older versions do not read them: there, the former
  // limits stay in force. ended_at: somebody ended it before its time.
  `CREATE TABLE limit_raises (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    key_id uuid NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    limits jsonb NOT NULL,
    until timestamptz NOT NULL,
    reason text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by uuid,
    ended_at timestamptz
  )`,
  // For reading those of a key that have not ended, and for listing all of them.
  `CREATE INDEX limit_raises_in_force ON limit_raises (key_id, until) WHERE ended_at IS NULL`,
  `CREATE INDEX limit_raises_by_key ON limit_raises (key_id, created_at, id)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
