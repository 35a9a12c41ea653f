import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Prices, endpoints and rules are validated wire forms. The request path reads them as a whole.
  `CREATE TABLE service_registrations (
    name text PRIMARY KEY CHECK (name ~ '^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$'),
    project_id uuid REFERENCES projects ON DELETE RESTRICT,
    studio_service_id text UNIQUE,
    route_pattern text NOT NULL CHECK (route_pattern LIKE '/%' AND route_pattern NOT LIKE '%//%'),
    upstream_base_url text CHECK (upstream_base_url ~ '^https?://'),
    health_check_path text CHECK (health_check_path LIKE '/%' AND health_check_path NOT LIKE '%//%'),
    health_check_method text NOT NULL DEFAULT 'GET' CHECK (health_check_method IN ('GET', 'HEAD')),
    enabled boolean NOT NULL DEFAULT false,
    allowed_methods text[] NOT NULL DEFAULT '{POST}',
    timeout_ms integer NOT NULL DEFAULT 60000 CHECK (timeout_ms BETWEEN 1 AND 600000),
    max_body_bytes integer NOT NULL DEFAULT 2097152 CHECK (max_body_bytes BETWEEN 1 AND 104857600),
    cost_mode text NOT NULL DEFAULT 'none' CHECK (cost_mode IN ('none', 'fixed', 'passthrough')),
    estimated_cost_usd double precision CHECK (estimated_cost_usd >= 0),
    pricing_rules jsonb NOT NULL DEFAULT '[]',
    openapi_source_path text,
    openapi_schema_hash text,
    openapi_synced_at timestamptz,
    openapi_endpoints jsonb NOT NULL DEFAULT '[]',
    endpoint_pricing_rules jsonb NOT NULL DEFAULT '[]',
    sealed_credential text,
    fallback_services text[] NOT NULL DEFAULT '{}',
    source text NOT NULL DEFAULT 'gateway' CHECK (source IN ('gateway', 'studio')),
    sync_status text NOT NULL DEFAULT 'local' CHECK (sync_status IN ('local', 'synced', 'incomplete', 'stale', 'failed')),
    last_synced_at timestamptz,
    disabled_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  )`,
  `CREATE TABLE project_service_links (
    project_id uuid NOT NULL REFERENCES projects ON DELETE CASCADE,
    service_name text NOT NULL REFERENCES service_registrations ON DELETE CASCADE,
    PRIMARY KEY (project_id, service_name)
  )`,
  `CREATE INDEX project_service_links_by_service ON project_service_links (service_name)`,
  `CREATE TABLE key_service_links (
    key_id uuid NOT NULL REFERENCES api_keys ON DELETE CASCADE,
    service_name text NOT NULL REFERENCES service_registrations ON DELETE CASCADE,
    PRIMARY KEY (key_id, service_name)
  )`,
  `CREATE INDEX key_service_links_by_service ON key_service_links (service_name)`,
  `CREATE TABLE provider_health_states (
    provider text NOT NULL,
    name text NOT NULL,
    status text NOT NULL CHECK (status IN ('healthy', 'degraded', 'unhealthy', 'unknown')),
    circuit_state text NOT NULL CHECK (circuit_state IN ('closed', 'open', 'half_open')),
    active_check_ok boolean,
    passive_success_count bigint NOT NULL DEFAULT 0 CHECK (passive_success_count >= 0),
    passive_failure_count bigint NOT NULL DEFAULT 0 CHECK (passive_failure_count >= 0),
    consecutive_failures bigint NOT NULL DEFAULT 0 CHECK (consecutive_failures >= 0),
    average_latency_ms double precision CHECK (average_latency_ms >= 0),
    last_error_code text,
    cooldown_until timestamptz,
    checked_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (provider, name)
  )`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
