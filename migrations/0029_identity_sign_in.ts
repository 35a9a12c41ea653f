import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The row by which the audit log knows a person who signs in at the identity provider. Nobody has its secret.
  `ALTER TABLE operator_tokens ADD COLUMN identity_hash bytea CHECK (octet_length(identity_hash) = 32)`,
  `CREATE UNIQUE INDEX operator_tokens_by_identity ON operator_tokens (identity_hash)
    WHERE identity_hash IS NOT NULL AND NOT disabled AND revoked_at IS NULL`,
  // When a session ends whatever happens, because groups may change at the identity provider.
  `ALTER TABLE operator_sessions ADD COLUMN ends_at timestamptz`,
  // The states of sign-ins that have succeeded, until they expire by themselves.
  `CREATE TABLE used_sign_ins (
    state_hash bytea PRIMARY KEY CHECK (octet_length(state_hash) = 32),
    expires_at timestamptz NOT NULL
  )`,
  `CREATE INDEX used_sign_ins_by_expiry ON used_sign_ins (expires_at)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
