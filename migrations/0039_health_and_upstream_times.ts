import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // A histogram as latency, first_byte and gateway have: how long requests were with the upstream. NULL in older rows.
  `ALTER TABLE usage_series ADD COLUMN upstream bigint[]`,

  // Since when a provider or service has its status. NULL where the row is older than this column.
  `ALTER TABLE provider_health_states ADD COLUMN status_since timestamptz`,
  `ALTER TABLE provider_health_states ALTER COLUMN status_since SET DEFAULT now()`,
  // Older processes change the status, too, during an upgrade.
  `CREATE FUNCTION keep_status_since() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.status_since := now();
    RETURN NEW;
  END $$`,
  `CREATE TRIGGER keep_status_since BEFORE UPDATE OF status ON provider_health_states
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION keep_status_since()`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
