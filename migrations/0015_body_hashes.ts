import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `CREATE TABLE body_hash_salt (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    salt text NOT NULL CHECK (salt ~ '^[0-9a-f]{64}$')
  )`,
  // Keyed hashes of the bodies of one request, for its debug bundle.
  `ALTER TABLE usage_events
    ADD COLUMN request_hash text,
    ADD COLUMN response_hash text`
]

/** Every installation has its own salt, so its hashes of a body differ from those of others. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
  yield* sql`INSERT INTO body_hash_salt (salt) VALUES (${randomBytes(32).toString("hex")})`
})
