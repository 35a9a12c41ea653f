import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The secret before the last rotation, valid during the grace period.
  `ALTER TABLE api_keys
    ADD COLUMN previous_key_hash bytea,
    ADD COLUMN previous_key_expires_at timestamptz`,
  `CREATE UNIQUE INDEX api_keys_by_previous_hash ON api_keys (previous_key_hash)
    WHERE previous_key_hash IS NOT NULL`,

  // Several tokens may be active. At least one of them must have all permissions and no expiry.
  `DROP INDEX operator_tokens_one_active`,
  `ALTER TABLE operator_tokens
    ADD COLUMN name text NOT NULL DEFAULT 'first operator' CHECK (char_length(name) BETWEEN 1 AND 120),
    ADD COLUMN expires_at timestamptz`,

  // Each audit event contains the hash of the one before. The head is stored separately, so that a truncated log is
  // detected.
  `ALTER TABLE audit_events
    ADD COLUMN sequence bigint,
    ADD COLUMN previous_hash bytea,
    ADD COLUMN hash bytea`,
  `CREATE TABLE audit_chain (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    sequence bigint NOT NULL DEFAULT 0,
    hash bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (octet_length(hash) = 32)
  )`,
  `INSERT INTO audit_chain DEFAULT VALUES`,
  // Chains existing events with the same encoding as src/state/AuditLog.ts.
  `DO $$
    DECLARE
      event record;
      field text;
      written text;
      head audit_chain;
    BEGIN
      SELECT * INTO head FROM audit_chain;
      FOR event IN SELECT * FROM audit_events ORDER BY created_at, id LOOP
        written := '';
        FOREACH field IN ARRAY ARRAY[
          (head.sequence + 1)::text, encode(head.hash, 'hex'), event.id::text,
          (extract(epoch FROM event.created_at) * 1000000)::bigint::text, event.actor_token_id::text, event.action,
          event.target_type, event.target_id, event.before_json::text, event.after_json::text, event.request_id,
          event.ip, event.user_agent
        ] LOOP
          written := written || coalesce(octet_length(field) || ':' || field, '-') || ',';
        END LOOP;
        UPDATE audit_events SET sequence = head.sequence + 1, previous_hash = head.hash,
          hash = sha256(convert_to(written, 'UTF8')) WHERE id = event.id;
        head.sequence := head.sequence + 1;
        head.hash := sha256(convert_to(written, 'UTF8'));
      END LOOP;
      UPDATE audit_chain SET sequence = head.sequence, hash = head.hash;
    END
  $$`,
  `ALTER TABLE audit_events
    ALTER COLUMN sequence SET NOT NULL,
    ALTER COLUMN previous_hash SET NOT NULL,
    ALTER COLUMN hash SET NOT NULL`,
  `CREATE UNIQUE INDEX audit_events_by_sequence ON audit_events (sequence)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
