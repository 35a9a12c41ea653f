import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Keys without a time for their rotation are last.
  `CREATE INDEX api_keys_by_rotation ON api_keys (coalesce(rotation_due_at, 'infinity'), id)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
