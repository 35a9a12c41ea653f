import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Limits that all requests of a layer share.
  `ALTER TABLE policy_layers ADD COLUMN shared jsonb NOT NULL DEFAULT '{}'`,

  // A counter in Redis is correct only if every request was counted. These columns record since when: for each daily or
  // monthly limit, the number of the change that introduced it; for a key, also the number of the change that moved it
  // to another project or team. A limit that is removed and set again gets a new number, and its counter is computed
  // from the usage records again. Limits from before this migration have none, which counts as 0.
  `CREATE SEQUENCE limit_changes`,
  `ALTER TABLE policy_layers
    ADD COLUMN limits_since jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN shared_since jsonb NOT NULL DEFAULT '{}'`,
  `ALTER TABLE api_keys
    ADD COLUMN limits_since jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN owner_since bigint NOT NULL DEFAULT 0`,

  // Triggers, because several statements write keys and layers, and one that did not update the columns would lift a
  // budget.
  `CREATE FUNCTION limits_since(before jsonb, after jsonb, since jsonb) RETURNS jsonb LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(jsonb_object_agg(field, CASE WHEN jsonb_typeof(before->field) = 'number'
      THEN coalesce((since->>field)::bigint, 0) ELSE nextval('limit_changes') END), '{}')
    FROM unnest(ARRAY['max_requests_per_day', 'max_tokens_per_day', 'daily_budget_usd', 'monthly_budget_usd']) AS field
    WHERE jsonb_typeof(after->field) = 'number'
  $$`,
  `CREATE FUNCTION number_key_limits() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      NEW.limits_since := limits_since('{}', NEW.policy, '{}');
      NEW.owner_since := nextval('limit_changes');
    ELSE
      NEW.limits_since := limits_since(OLD.policy, NEW.policy, OLD.limits_since);
      IF (NEW.project_id, NEW.team_id) IS DISTINCT FROM (OLD.project_id, OLD.team_id) THEN
        NEW.owner_since := nextval('limit_changes');
      END IF;
    END IF;
    RETURN NEW;
  END $$`,
  `CREATE TRIGGER number_key_limits BEFORE INSERT OR UPDATE OF policy, project_id, team_id ON api_keys
    FOR EACH ROW EXECUTE FUNCTION number_key_limits()`,
  `CREATE FUNCTION number_layer_limits() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      NEW.limits_since := limits_since('{}', NEW.policy, '{}');
      NEW.shared_since := limits_since('{}', NEW.shared, '{}');
    ELSE
      NEW.limits_since := limits_since(OLD.policy, NEW.policy, OLD.limits_since);
      NEW.shared_since := limits_since(OLD.shared, NEW.shared, OLD.shared_since);
    END IF;
    RETURN NEW;
  END $$`,
  `CREATE TRIGGER number_layer_limits BEFORE INSERT OR UPDATE OF policy, shared ON policy_layers
    FOR EACH ROW EXECUTE FUNCTION number_layer_limits()`,

  // Requests that a request limit has counted: those that no earlier check refused. Rows from before this migration, or
  // from an older version of the gateway, have NULL.
  `ALTER TABLE usage_rollups ADD COLUMN admitted_count bigint`,
  // For summing a team's or a model's monthly spend after Redis has lost it.
  `CREATE INDEX api_keys_by_team ON api_keys (team_id) WHERE team_id IS NOT NULL`,
  `CREATE INDEX usage_rollups_by_model ON usage_rollups (model, grain, bucket) WHERE model IS NOT NULL`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
