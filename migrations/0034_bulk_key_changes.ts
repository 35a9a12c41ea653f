import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // One change of many keys, on behalf of an operator token. selection: the filter, null where the keys were listed by
  // their ids. due_at: when the next keys are changed, so that changes take turns. undoes: another change, which may be
  // deleted before this one. stop_reason: why it ended before the last key.
  `CREATE TABLE bulk_key_changes (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT now(),
    change jsonb NOT NULL,
    selection jsonb,
    undoes uuid,
    state text NOT NULL DEFAULT 'running',
    due_at timestamptz NOT NULL DEFAULT now(),
    stop_reason text,
    ended_at timestamptz,
    selected integer NOT NULL DEFAULT 0,
    changed integer NOT NULL DEFAULT 0,
    unchanged integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    token_id uuid,
    ip text,
    user_agent text,
    request_id text NOT NULL
  )`,
  `CREATE INDEX bulk_key_changes_by_age ON bulk_key_changes (created_at, id)`,
  `CREATE INDEX bulk_key_changes_by_undone ON bulk_key_changes (undoes, created_at) WHERE undoes IS NOT NULL`,
  `CREATE INDEX bulk_key_changes_due ON bulk_key_changes (due_at) WHERE state = 'running'`,
  // The selected keys. replaced: what the change has replaced in the key. restore: what an undo sets back.
  `CREATE TABLE bulk_key_change_items (
    change_id uuid NOT NULL REFERENCES bulk_key_changes (id) ON DELETE CASCADE,
    position integer NOT NULL,
    key_id uuid NOT NULL,
    outcome text NOT NULL DEFAULT 'waiting',
    restore jsonb,
    replaced jsonb,
    message text,
    PRIMARY KEY (change_id, position)
  )`,
  `CREATE INDEX bulk_key_change_items_by_outcome ON bulk_key_change_items (change_id, outcome, position)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
