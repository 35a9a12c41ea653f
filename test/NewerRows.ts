/** A newer version's schema allows values that this version's does not. */
export const unconstrained = `DO $$ DECLARE found record; BEGIN
  FOR found IN SELECT conrelid::regclass::text AS relation, conname FROM pg_constraint WHERE contype = 'c'
    AND conrelid::regclass::text IN ('canonical_routes', 'policy_layers', 'provider_configs', 'guardrail_definitions',
      'service_registrations', 'upstream_passthrough_settings', 'gateway_auth_settings', 'api_keys', 'operator_tokens',
      'upstream_credential_mappings', 'model_prices', 'projects', 'service_registry_snapshots')
  LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.relation, found.conname); END LOOP;
END $$`

/** What a newer version may have written, by table: each has a value that this version does not know. */
export const statements = {
  route: `UPDATE canonical_routes SET mode = 'mirrored' WHERE route_id = 'embeddings'`,
  newRoute: `INSERT INTO canonical_routes (route_id, family, route) VALUES ('rerank', 'a', '/v1/rerank')`,
  layerField: `INSERT INTO policy_layers (layer_kind, scope_id, policy) VALUES ('team', 'newer-field', '{"max_things":3}')`,
  layerValue: `INSERT INTO policy_layers (layer_kind, scope_id, policy) VALUES ('team', 'newer-value', '{"allowed_routes":["/v9"]}')`,
  provider: `INSERT INTO provider_configs (provider, name, base_url, credential_header_mode)
    VALUES ('upstream', 'newer', 'https://other.test', 'signature')`,
  guardrail: `INSERT INTO guardrail_definitions (name, description, provider_kind, modes, failure_policy)
    VALUES ('newer', '', 'wasm', '{pre_call}', 'fail_closed')`,
  streamMode: `INSERT INTO guardrail_definitions
      (name, description, provider_kind, modes, failure_policy, enabled, endpoint_url, stream_mode)
    VALUES ('newer-mode', '', 'http', '{during_call}', 'fail_closed', true, 'https://newer.test', 'sentence')`,
  streamWindow: `INSERT INTO guardrail_definitions
      (name, description, provider_kind, modes, failure_policy, enabled, endpoint_url, stream_mode, window_chars)
    VALUES ('newer-window', '', 'http', '{during_call}', 'fail_closed', true, 'https://newer.test', 'window', 0)`,
  service: `INSERT INTO service_registrations (name, route_pattern, upstream_base_url, enabled, cost_mode)
    VALUES ('newer', '/internal/newer/*', 'https://newer.test', true, 'auction')`,
  passthrough: `UPDATE upstream_passthrough_settings SET enabled = true, admin_api_exposure = 'by_role'`,
  authSettings: `INSERT INTO gateway_auth_settings (svc_key_header, identity_enabled, allowed_groups, accepted_algorithms,
    jwks_cache_ttl_seconds, clock_skew_seconds, trusted_gateway_header_enabled)
    VALUES ('X-Svc-Key', false, '{}', '{RS256,EdDSA}', 300, 60, false)`
} as const
