import { Effect } from "effect"
import { SqlClient } from "effect/sql"

// What guardrails need is laid out here as far as no earlier migration did: each statement leaves alone what is there.
const statements = [
  `ALTER TABLE guardrail_definitions
    ADD COLUMN IF NOT EXISTS endpoint_url text CHECK (endpoint_url ~ '^https?://'),
    ADD COLUMN IF NOT EXISTS timeout_ms integer CHECK (timeout_ms BETWEEN 100 AND 10000),
    ADD COLUMN IF NOT EXISTS sealed_token text`,

  // The wire form of the key's guardrail policy, already validated: the request path reads it whole.
  `ALTER TABLE api_keys ADD COLUMN IF NOT EXISTS guardrail_policy jsonb NOT NULL DEFAULT '{}'`,

  // Written with the usage record of their request, at least once: the same record makes the same ids.
  `CREATE TABLE IF NOT EXISTS guardrail_execution_events (
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
  `CREATE INDEX IF NOT EXISTS guardrail_execution_events_by_guardrail
    ON guardrail_execution_events (guardrail_name, created_at)`,
  `CREATE INDEX IF NOT EXISTS guardrail_execution_events_by_key ON guardrail_execution_events (key_id, created_at)`,

  `ALTER TABLE usage_events
    ADD COLUMN IF NOT EXISTS service_name text,
    ADD COLUMN IF NOT EXISTS http_method text,
    ADD COLUMN IF NOT EXISTS endpoint_path text,
    ADD COLUMN IF NOT EXISTS endpoint_template text,
    ADD COLUMN IF NOT EXISTS cost_mode text,
    ADD COLUMN IF NOT EXISTS pricing_rule_name text,
    ADD COLUMN IF NOT EXISTS policy_version bigint,
    ADD COLUMN IF NOT EXISTS tools boolean,
    ADD COLUMN IF NOT EXISTS estimated_input_tokens bigint,
    ADD COLUMN IF NOT EXISTS denial jsonb,
    ADD COLUMN IF NOT EXISTS guardrail_action_count integer`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
