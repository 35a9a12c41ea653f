import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** At most one row. With a row the environment is ignored; without one it decides. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE gateway_auth_settings (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    svc_key_header text NOT NULL,
    identity_enabled boolean NOT NULL,
    tenant_id text,
    audience text,
    issuer text,
    oidc_discovery_url text,
    required_scope text,
    required_role text,
    allowed_groups text[] NOT NULL,
    accepted_algorithms text[] NOT NULL,
    jwks_cache_ttl_seconds integer NOT NULL CHECK (jwks_cache_ttl_seconds BETWEEN 1 AND 86400),
    clock_skew_seconds integer NOT NULL CHECK (clock_skew_seconds BETWEEN 0 AND 600),
    trusted_gateway_header_enabled boolean NOT NULL,
    sealed_secret text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK (NOT identity_enabled OR (tenant_id IS NOT NULL AND audience IS NOT NULL AND issuer IS NOT NULL
      AND oidc_discovery_url IS NOT NULL)),
    CHECK (NOT trusted_gateway_header_enabled OR sealed_secret IS NOT NULL)
  )`
})
