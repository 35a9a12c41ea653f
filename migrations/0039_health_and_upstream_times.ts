import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // A histogram as latency, first_byte and gateway have: how long requests were with the upstream. NULL in older rows.
  `ALTER TABLE usage_series ADD COLUMN upstream bigint[]`,

  // Since when a provider or service has its status. NULL where the row is older than this column.
  `ALTER TABLE provider_health_states ADD COLUMN status_since timestamptz`,
  `ALTER TABLE provider_health_states ALTER COLUMN status_since SET DEFAULT now()`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
