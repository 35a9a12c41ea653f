import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // True if the holder of a key may give it a new secret. It has a column of its own, because older versions would
  // take it for a restriction in the policy, and refuse the key.
  `ALTER TABLE api_keys ADD COLUMN holder_rotation boolean NOT NULL DEFAULT false`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
