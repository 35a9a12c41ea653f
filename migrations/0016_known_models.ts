import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // False: clients chose the model's name, and it counts as "other" in the sums. NULL where nobody asked: the event has
  // no model, the upstream answered for it, or it was written by a version without this column.
  `ALTER TABLE usage_events ADD COLUMN model_known boolean`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
