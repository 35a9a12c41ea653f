import { Effect } from "effect"
import { SqlClient } from "effect/sql"

// What policies need is laid out here as far as no earlier migration did: each statement leaves alone what is there.
const statements = [
  // `policy` and `guardrail_policy` are the wire forms, already validated: the request path reads them whole. The scope is
  // the id of a project, the name of a team or model, or a route; only the global layer has none.
  `CREATE TABLE IF NOT EXISTS policy_layers (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    layer_kind text NOT NULL CHECK (layer_kind IN ('global', 'project', 'team', 'route', 'model')),
    scope_id text,
    policy jsonb NOT NULL DEFAULT '{}',
    guardrail_policy jsonb NOT NULL DEFAULT '{}',
    policy_version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((layer_kind = 'global') = (scope_id IS NULL))
  )`,
  `CREATE UNIQUE INDEX IF NOT EXISTS policy_layers_by_scope ON policy_layers (layer_kind, coalesce(scope_id, ''))`,
  // A key that was disabled because nobody used it, and enabled again, counts its days from there.
  `ALTER TABLE api_keys
    ADD COLUMN IF NOT EXISTS team_id text CHECK (char_length(team_id) BETWEEN 1 AND 128),
    ADD COLUMN IF NOT EXISTS guardrail_policy jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS enabled_at timestamptz`,
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
    ADD COLUMN IF NOT EXISTS guardrail_action_count integer`,
  // For whoever asks why a request was decided as it was.
  `CREATE INDEX IF NOT EXISTS usage_events_by_request ON usage_events (request_id, created_at DESC)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
