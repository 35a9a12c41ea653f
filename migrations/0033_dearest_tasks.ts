import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // As `usage_series_single_tasks` is in the order of requests, by which most people ask first, this is in that of costs.
  `CREATE INDEX usage_series_dearest_tasks ON usage_series (cost_nanos DESC, name)
    INCLUDE (bucket, status_code, request_count)
    WHERE grain = 'day' AND dimension = 'task' AND only_row`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
