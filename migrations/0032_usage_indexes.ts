import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The values of a filter are found by steps through an index. These columns had none. Partial indexes: the days have
  // the same values as the hours in a fraction of the rows, and those without keys have all routes and providers.
  `CREATE INDEX usage_rollups_day_routes ON usage_rollups (route) WHERE grain = 'day' AND part = 'overview'`,
  `CREATE INDEX usage_rollups_day_providers ON usage_rollups (provider) WHERE grain = 'day' AND part = 'overview'`,
  `CREATE INDEX usage_rollups_day_endpoints ON usage_rollups (endpoint)
    WHERE grain = 'day' AND part <> 'task' AND endpoint IS NOT NULL`,
  `CREATE INDEX usage_rollups_day_clients ON usage_rollups (client)
    WHERE grain = 'day' AND part <> 'task' AND client IS NOT NULL`,

  // True: no other day has a row of the task, and this day has no other row of it, so the row is the task's sum. NULL in
  // sums of tasks by the day: an older version wrote the row. Without a default, no row is rewritten.
  `ALTER TABLE usage_series ADD COLUMN only_row boolean`,
  // A page shows a few of a month's 200,000 tasks. This index has those with a single row in the order of their requests;
  // the columns behind INCLUDE let PostgreSQL order them by these without reading the table.
  `CREATE INDEX usage_series_single_tasks ON usage_series (request_count DESC, name)
    INCLUDE (bucket, status_code, cost_nanos, total_latency_ms, total_tokens, fallback_count)
    WHERE grain = 'day' AND dimension = 'task' AND only_row`,
  `CREATE INDEX usage_series_other_tasks ON usage_series (bucket, name)
    INCLUDE (status_code, request_count, cost_nanos, total_latency_ms, total_tokens, fallback_count)
    WHERE grain = 'day' AND dimension = 'task' AND NOT only_row`,
  `CREATE INDEX usage_series_unmarked_tasks ON usage_series (bucket)
    WHERE grain = 'day' AND dimension = 'task' AND only_row IS NULL`,
  // Days only: hours of tasks are read by their time.
  `DROP INDEX usage_series_by_task`,
  `CREATE INDEX usage_series_by_task ON usage_series (name, bucket) WHERE grain = 'day' AND dimension = 'task'`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
