import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // One change of many keys, on behalf of whoever asked for it. stop_reason: why it ended before the last key.
  `CREATE TABLE bulk_key_changes (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT now(),
    change jsonb NOT NULL,
    undoes uuid REFERENCES bulk_key_changes (id) ON DELETE SET NULL,
    state text NOT NULL DEFAULT 'running',
    stop_reason text,
    ended_at timestamptz,
    token_id uuid,
    ip text,
    user_agent text,
    request_id text NOT NULL
  )`,
  `CREATE INDEX bulk_key_changes_by_age ON bulk_key_changes (created_at, id)`,
  `CREATE INDEX bulk_key_changes_running ON bulk_key_changes (created_at) WHERE state = 'running'`,
  // The keys that were selected. before: what an undo sets back. message: why the key could not be changed.
  `CREATE TABLE bulk_key_change_items (
    change_id uuid NOT NULL REFERENCES bulk_key_changes (id) ON DELETE CASCADE,
    place integer NOT NULL,
    key_id uuid NOT NULL,
    outcome text NOT NULL DEFAULT 'open',
    before jsonb,
    message text,
    PRIMARY KEY (change_id, place)
  )`,
  `CREATE INDEX bulk_key_change_items_by_outcome ON bulk_key_change_items (change_id, outcome, place)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
