import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The team of the key when the request was made. NULL also in what older versions wrote.
  `ALTER TABLE usage_events ADD COLUMN team_id text`,
  `CREATE INDEX usage_events_by_team ON usage_events (team_id, created_at) WHERE team_id IS NOT NULL`,

  // unpriced_count: requests that the flat price stands for, because their model has none. NULL: an older version
  // wrote the row, and did not count them.
  `ALTER TABLE usage_rollups ADD COLUMN team_id text COLLATE "C", ADD COLUMN unpriced_count bigint`,
  `CREATE INDEX usage_rollups_by_team ON usage_rollups (team_id, grain, bucket) WHERE team_id IS NOT NULL`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
