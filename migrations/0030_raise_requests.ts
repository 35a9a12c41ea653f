import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Holders of keys ask for more, and operators answer. raise_id: the exception that an operator made of it.
  `CREATE TABLE raise_requests (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    key_id uuid NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    meter text,
    amount double precision,
    reason text NOT NULL,
    state text NOT NULL DEFAULT 'open',
    created_at timestamptz NOT NULL DEFAULT now(),
    answered_at timestamptz,
    answered_by uuid,
    answer text,
    raise_id uuid REFERENCES limit_raises (id) ON DELETE SET NULL
  )`,
  `CREATE INDEX raise_requests_by_age ON raise_requests (created_at, id)`,
  `CREATE INDEX raise_requests_open ON raise_requests (created_at, id) WHERE state = 'open'`,
  `CREATE INDEX raise_requests_by_key ON raise_requests (key_id, created_at, id)`,
  // Holders see the history of their key's secret.
  `CREATE INDEX audit_events_of_secrets ON audit_events (target_id, created_at)
    WHERE target_type = 'key' AND action IN ('keys:create', 'keys:rotate', 'keys:rotate_by_holder', 'keys:disable', 'keys:enable')`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
