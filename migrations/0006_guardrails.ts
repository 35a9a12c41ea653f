import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `ALTER TABLE guardrail_definitions
    ADD COLUMN endpoint_url text CHECK (endpoint_url ~ '^https?://'),
    ADD COLUMN timeout_ms integer CHECK (timeout_ms BETWEEN 100 AND 10000),
    ADD COLUMN sealed_token text`,

  // Written with the usage record of the request, at least once: the ids are derived from the record, so a repeated
  // write is a no-op.
  `CREATE TABLE guardrail_execution_events (
    id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    request_id text NOT NULL,
    key_id uuid NOT NULL,
    project_id uuid,
    route text NOT NULL,
    model text,
    provider text NOT NULL,
    guardrail_name text NOT NULL,
    mode text NOT NULL CHECK (mode IN ('pre_call', 'post_call', 'during_call')),
    action text NOT NULL CHECK (action IN ('allow', 'block', 'modify', 'warn')),
    failure_policy text NOT NULL CHECK (failure_policy IN ('fail_closed', 'fail_open', 'dry_run')),
    latency_ms bigint NOT NULL,
    reason text,
    metadata jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (created_at, id)
  )`,
  `CREATE INDEX guardrail_execution_events_by_guardrail
    ON guardrail_execution_events (guardrail_name, created_at)`,
  `CREATE INDEX guardrail_execution_events_by_key ON guardrail_execution_events (key_id, created_at)`,
  `CREATE INDEX guardrail_execution_events_by_request ON guardrail_execution_events (request_id, created_at)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
