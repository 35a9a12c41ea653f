import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The team of the key at the time of the request. NULL also in rows of older versions.
  `ALTER TABLE usage_events ADD COLUMN team_id text`,
  `CREATE INDEX usage_events_by_team ON usage_events (team_id, created_at) WHERE team_id IS NOT NULL`,

  // unpriced_count: requests that were charged the flat price, because their model has no price. NULL: an older version
  // wrote the row without counting.
  `ALTER TABLE usage_rollups ADD COLUMN team_id text COLLATE "C", ADD COLUMN unpriced_count bigint`,
  `CREATE INDEX usage_rollups_by_team ON usage_rollups (team_id, grain, bucket) WHERE team_id IS NOT NULL`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
