import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Sessions of browsers. A session belongs to the operator token or the gateway key that started it, and to the secret
  // that was presented, so that it ends with either.
  `CREATE TABLE operator_sessions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    session_hash bytea NOT NULL UNIQUE CHECK (octet_length(session_hash) = 32),
    token_id uuid REFERENCES operator_tokens ON DELETE CASCADE,
    key_id uuid REFERENCES api_keys ON DELETE CASCADE,
    secret_hash bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
    created_at timestamptz NOT NULL,
    used_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CHECK (num_nonnulls(token_id, key_id) = 1)
  )`,
  `CREATE INDEX operator_sessions_by_owner ON operator_sessions ((coalesce(token_id, key_id)), used_at)`,
  `CREATE INDEX operator_sessions_by_key ON operator_sessions (key_id) WHERE key_id IS NOT NULL`,
  `CREATE INDEX operator_sessions_by_use ON operator_sessions (used_at)`,
  `CREATE INDEX operator_sessions_by_expiry ON operator_sessions (expires_at)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
