import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // What people call a key. NULL: it has no name.
  `ALTER TABLE api_keys ADD COLUMN name text`,
  // A key that was found somewhere is looked up by what is shown of it.
  `CREATE INDEX api_keys_by_prefix ON api_keys (key_prefix)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
