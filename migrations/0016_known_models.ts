import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // False: the client chose the model name freely, and sums count it as "other". NULL: the event has no model, the
  // upstream accepted the model, or a version without this column wrote the row.
  `ALTER TABLE usage_events ADD COLUMN model_known boolean`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
