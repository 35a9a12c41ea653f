import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The last archived event; the log begins after it. 0: nothing is archived.
  `ALTER TABLE audit_chain
    ADD COLUMN archived_sequence bigint NOT NULL DEFAULT 0,
    ADD COLUMN archived_hash bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (octet_length(archived_hash) = 32)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
