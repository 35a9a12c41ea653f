import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Whether who holds a key may give it a new secret. In a column of its own, because versions that do not know it would
  // take it for a restriction in the policy, and refuse the key.
  `ALTER TABLE api_keys ADD COLUMN holder_rotation boolean NOT NULL DEFAULT false`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
