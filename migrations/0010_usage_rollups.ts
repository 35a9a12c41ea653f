import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Partial indexes: most requests have none of the three labels and cost these indexes nothing.
  `CREATE INDEX usage_events_by_task ON usage_events (task_id, created_at) WHERE task_id IS NOT NULL`,
  `CREATE INDEX usage_events_by_run ON usage_events (run_id, created_at) WHERE run_id IS NOT NULL`,
  `CREATE INDEX usage_events_by_trace ON usage_events (trace_id, created_at) WHERE trace_id IS NOT NULL`,

  // Sums over the events of an hour or a day (UTC) that agree in the columns that queries filter or group by. Each
  // event counts in three parts, so that only queries that need a distinction pay for it: in 'overview', without key,
  // project, model and endpoint; and with these in 'untasked' or, when it has a task or a run, in 'tasked' without the
  // two and in 'task' with them.
  // series is the digest of the columns between it and request_count: it is short, and treats NULLs as equal.
  // "C": labels are compared and sorted as bytes, so a prefix is a range of the index.
  `CREATE TABLE usage_rollups (
    grain text NOT NULL CHECK (grain IN ('hour', 'day')),
    part text NOT NULL CHECK (part IN ('overview', 'untasked', 'tasked', 'task')),
    bucket timestamptz NOT NULL,
    series uuid NOT NULL,
    project_id uuid,
    key_id uuid,
    route text COLLATE "C" NOT NULL,
    model text COLLATE "C",
    provider text COLLATE "C" NOT NULL,
    service_name text COLLATE "C",
    http_method text COLLATE "C",
    endpoint text COLLATE "C",
    status_code integer NOT NULL,
    task_id text COLLATE "C",
    run_id text COLLATE "C",
    request_count bigint NOT NULL,
    reported_count bigint NOT NULL,
    estimated_count bigint NOT NULL,
    guardrail_block_count bigint NOT NULL,
    expensive_request_count bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    total_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cost_nanos numeric NOT NULL,
    total_latency_ms bigint NOT NULL,
    fallback_count bigint NOT NULL,
    PRIMARY KEY (grain, part, bucket, series)
  ) WITH (fillfactor = 80)`,
  `CREATE INDEX usage_rollups_by_key ON usage_rollups (key_id, grain, bucket) WHERE key_id IS NOT NULL`,
  `CREATE INDEX usage_rollups_by_project ON usage_rollups (project_id, grain, bucket) WHERE project_id IS NOT NULL`,
  `CREATE INDEX usage_rollups_by_service ON usage_rollups (service_name, grain, bucket) WHERE service_name IS NOT NULL`,
  `CREATE INDEX usage_rollups_by_task ON usage_rollups (task_id) WHERE task_id IS NOT NULL`,
  `CREATE INDEX usage_rollups_by_run ON usage_rollups (run_id) WHERE run_id IS NOT NULL`,

  // The rollups contain all events before until and no later ones. The gateway advances it in small steps, so existing
  // events are rolled up while it already serves, and query results are complete meanwhile.
  `CREATE TABLE usage_rolled (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    until timestamptz NOT NULL DEFAULT 'epoch'
  )`,
  `INSERT INTO usage_rolled DEFAULT VALUES`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
