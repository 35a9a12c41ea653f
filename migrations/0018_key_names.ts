import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The name that people give a key. NULL: no name.
  `ALTER TABLE api_keys ADD COLUMN name text`,
  // For finding a key by its displayed prefix.
  `CREATE INDEX api_keys_by_prefix ON api_keys (key_prefix)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
