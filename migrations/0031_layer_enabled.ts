import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // A layer that is not enabled keeps its settings and restricts nothing. Older versions still apply it.
  `ALTER TABLE policy_layers ADD COLUMN enabled boolean NOT NULL DEFAULT true`,
  // While a layer is not enabled nothing is counted for it. Its limits are numbered anew when it is enabled, so that
  // their counters are computed from the usage records again.
  `CREATE OR REPLACE FUNCTION number_layer_limits() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'INSERT' OR (NEW.enabled AND NOT OLD.enabled) THEN
      NEW.limits_since := limits_since('{}', NEW.policy, '{}');
      NEW.shared_since := limits_since('{}', NEW.shared, '{}');
    ELSE
      NEW.limits_since := limits_since(OLD.policy, NEW.policy, OLD.limits_since);
      NEW.shared_since := limits_since(OLD.shared, NEW.shared, OLD.shared_since);
    END IF;
    RETURN NEW;
  END $$`,
  `DROP TRIGGER number_layer_limits ON policy_layers`,
  `CREATE TRIGGER number_layer_limits BEFORE INSERT OR UPDATE OF policy, shared, enabled ON policy_layers
    FOR EACH ROW EXECUTE FUNCTION number_layer_limits()`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
