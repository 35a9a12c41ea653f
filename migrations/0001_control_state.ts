import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  `CREATE TABLE projects (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name text NOT NULL UNIQUE CHECK (char_length(btrim(name)) BETWEEN 1 AND 120),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  )`,

  // `policy` is the validated wire form of the key's policy. The request path reads it as a whole.
  `CREATE TABLE api_keys (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    owner_type text NOT NULL CHECK (owner_type IN ('project', 'individual')),
    project_id uuid REFERENCES projects ON DELETE RESTRICT,
    key_prefix text NOT NULL,
    key_hash bytea NOT NULL UNIQUE CHECK (octet_length(key_hash) = 32),
    disabled boolean NOT NULL DEFAULT false,
    revoked_at timestamptz,
    expires_at timestamptz,
    rotation_due_at timestamptz,
    last_used_at timestamptz,
    policy jsonb NOT NULL,
    policy_version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((owner_type = 'project') = (project_id IS NOT NULL))
  )`,
  `CREATE INDEX api_keys_by_project ON api_keys (project_id) WHERE project_id IS NOT NULL`,
  `CREATE INDEX api_keys_by_age ON api_keys (created_at DESC, id DESC)`,

  // The vault seals secrets before they are stored. With a key, `sealed` columns never hold clear text.
  `CREATE TABLE provider_configs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    provider text NOT NULL CHECK (provider IN ('upstream', 'internal-service')),
    name text NOT NULL CHECK (char_length(btrim(name)) BETWEEN 1 AND 120),
    base_url text NOT NULL CHECK (base_url ~ '^https?://'),
    enabled boolean NOT NULL DEFAULT true,
    sealed_credential text,
    credential_header_mode text NOT NULL DEFAULT 'authorization_bearer'
      CHECK (credential_header_mode IN ('authorization_bearer', 'custom_header')),
    credential_header_name text,
    credential_header_value_format text NOT NULL DEFAULT 'raw' CHECK (credential_header_value_format IN ('raw', 'bearer')),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (provider, name),
    CHECK (credential_header_mode <> 'custom_header' OR credential_header_name IS NOT NULL)
  )`,
  `CREATE UNIQUE INDEX provider_configs_one_enabled_upstream ON provider_configs (provider) WHERE enabled AND provider = 'upstream'`,

  `CREATE TABLE upstream_credential_mappings (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    scope text NOT NULL CHECK (scope IN ('key', 'project')),
    key_id uuid UNIQUE REFERENCES api_keys ON DELETE CASCADE,
    project_id uuid UNIQUE REFERENCES projects ON DELETE CASCADE,
    enabled boolean NOT NULL DEFAULT true,
    sealed_credential text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((scope = 'key') = (key_id IS NOT NULL) AND (scope = 'project') = (project_id IS NOT NULL))
  )`,

  `CREATE TABLE canonical_routes (
    route_id text PRIMARY KEY,
    family text NOT NULL CHECK (family IN ('a', 'b')),
    route text NOT NULL UNIQUE,
    enabled boolean NOT NULL DEFAULT true,
    mode text NOT NULL DEFAULT 'managed_by_gateway' CHECK (mode IN ('managed_by_gateway', 'direct_upstream_passthrough')),
    timeout_ms integer NOT NULL DEFAULT 120000 CHECK (timeout_ms BETWEEN 1 AND 600000),
    max_request_body_bytes integer NOT NULL DEFAULT 1048576 CHECK (max_request_body_bytes BETWEEN 1 AND 104857600),
    max_response_body_bytes integer NOT NULL DEFAULT 1048576 CHECK (max_response_body_bytes BETWEEN 1 AND 104857600),
    updated_at timestamptz NOT NULL DEFAULT now()
  )`,
  `INSERT INTO canonical_routes (route_id, family, route) VALUES
    ('chat-completions', 'a', '/v1/chat/completions'),
    ('responses', 'a', '/v1/responses'),
    ('embeddings', 'a', '/v1/embeddings'),
    ('messages', 'b', '/v1/messages'),
    ('messages-count-tokens', 'b', '/v1/messages/count_tokens'),
    ('message-batches', 'b', '/v1/messages/batches'),
    ('message-batch', 'b', '/v1/messages/batches/*'),
    ('message-batch-results', 'b', '/v1/messages/batches/*/results'),
    ('message-batch-cancel', 'b', '/v1/messages/batches/*/cancel'),
    ('models', 'b', '/v1/models')`,

  // Nano-dollars per million tokens: integers, so that sums are exact.
  `CREATE TABLE model_prices (
    model text PRIMARY KEY CHECK (char_length(model) BETWEEN 1 AND 256),
    input_nanos_per_million bigint NOT NULL CHECK (input_nanos_per_million >= 0),
    cached_input_nanos_per_million bigint CHECK (cached_input_nanos_per_million >= 0),
    cache_write_nanos_per_million bigint CHECK (cache_write_nanos_per_million >= 0),
    output_nanos_per_million bigint NOT NULL CHECK (output_nanos_per_million >= 0),
    updated_at timestamptz NOT NULL DEFAULT now()
  )`,

  `CREATE TABLE guardrail_definitions (
    name text PRIMARY KEY,
    description text NOT NULL,
    provider_kind text NOT NULL CHECK (provider_kind IN ('built_in', 'http')),
    modes text[] NOT NULL,
    default_on boolean NOT NULL DEFAULT false,
    failure_policy text NOT NULL CHECK (failure_policy IN ('fail_closed', 'fail_open', 'dry_run')),
    config_schema jsonb NOT NULL DEFAULT '{}',
    runtime_config jsonb NOT NULL DEFAULT '{}',
    enabled boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  )`,
  `INSERT INTO guardrail_definitions (name, description, provider_kind, modes, failure_policy, config_schema, runtime_config)
    VALUES ('pii-redact', 'Replaces e-mail addresses, phone numbers and social security numbers by placeholders', 'built_in',
      '{pre_call,post_call,during_call}', 'fail_closed', '{"restore_output":"boolean"}', '{"restore_output":true}')`,

  `CREATE TABLE operator_tokens (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    token_prefix text NOT NULL,
    token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    roles text[] NOT NULL DEFAULT '{owner}',
    scopes text[] NOT NULL DEFAULT '{*}',
    disabled boolean NOT NULL DEFAULT false,
    revoked_at timestamptz,
    last_used_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  )`,
  `CREATE UNIQUE INDEX operator_tokens_one_active ON operator_tokens ((true)) WHERE NOT disabled AND revoked_at IS NULL`,

  `CREATE TABLE audit_events (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    actor_token_id uuid REFERENCES operator_tokens,
    action text NOT NULL,
    target_type text NOT NULL,
    target_id text NOT NULL,
    before_json jsonb,
    after_json jsonb,
    request_id text NOT NULL,
    ip text,
    user_agent text,
    created_at timestamptz NOT NULL DEFAULT now()
  )`,
  `CREATE INDEX audit_events_by_age ON audit_events (created_at DESC, id DESC)`,

  // Written in batches and at least once: (created_at, id) makes a repeated write a no-op. `id` is the gateway's own
  // and unique per request; `request_id` may come from the client and may repeat.
  `CREATE TABLE usage_events (
    id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    request_id text NOT NULL,
    key_id uuid NOT NULL,
    project_id uuid,
    route text NOT NULL,
    model text,
    provider text NOT NULL,
    status text NOT NULL CHECK (status IN ('success', 'failure')),
    status_code integer NOT NULL,
    error_code text,
    latency_ms bigint NOT NULL,
    usage_source text NOT NULL CHECK (usage_source IN ('reported', 'estimated', 'status_only')),
    input_tokens bigint,
    output_tokens bigint,
    total_tokens bigint,
    cached_input_tokens bigint,
    cache_write_tokens bigint,
    reasoning_tokens bigint,
    cost_nanos bigint,
    cost_source text NOT NULL,
    streamed boolean NOT NULL,
    task_id text,
    run_id text,
    trace_id text,
    fallback_count integer NOT NULL DEFAULT 0,
    PRIMARY KEY (created_at, id)
  )`,
  `CREATE INDEX usage_events_by_key ON usage_events (key_id, created_at)`,
  `CREATE INDEX usage_events_by_project ON usage_events (project_id, created_at) WHERE project_id IS NOT NULL`,

  // One row. Every configuration change increments it in its own transaction, so that a process that missed a notice
  // still detects the change.
  `CREATE TABLE control_epoch (singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton), epoch bigint NOT NULL DEFAULT 1)`,
  `INSERT INTO control_epoch DEFAULT VALUES`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
