import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The gateway key with which a session began, sealed under a key that is made of the cookie's value. The database knows
  // this value by hash alone. Tokens of operators are never kept.
  `ALTER TABLE operator_sessions ADD COLUMN key_under_cookie text CHECK (key_under_cookie IS NULL OR key_id IS NOT NULL)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
