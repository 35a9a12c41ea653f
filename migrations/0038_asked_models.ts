import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The model that the holder of a key asks for, instead of a higher limit. Older versions show such a request without it.
  `ALTER TABLE raise_requests ADD COLUMN model text CHECK (model IS NULL OR meter IS NULL)`,
  // Finds the models that keys asked for and were refused because they have no price.
  `CREATE INDEX usage_events_unpriced ON usage_events (created_at) WHERE denial->>'check' = 'price'`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
