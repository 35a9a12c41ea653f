import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The wildcard inspects few request bodies and no responses. These settings decide whether it refuses what it cannot
  // check.
  `ALTER TABLE upstream_passthrough_settings
    ADD COLUMN guardrails text NOT NULL DEFAULT 'refuse' CHECK (guardrails IN ('refuse', 'skip')),
    ADD COLUMN body_policies text NOT NULL DEFAULT 'refuse' CHECK (body_policies IN ('refuse', 'skip')),
    ADD COLUMN ownership text NOT NULL DEFAULT 'project' CHECK (ownership IN ('project', 'key', 'shared'))`,
  `ALTER TABLE canonical_routes
    ADD COLUMN ownership text NOT NULL DEFAULT 'project' CHECK (ownership IN ('project', 'key', 'shared'))`,
  // Objects that keys created at an upstream. Redis caches them for an hour; this table keeps them.
  `CREATE TABLE upstream_objects (
    provider text NOT NULL,
    kind text NOT NULL,
    id text NOT NULL,
    key_id uuid NOT NULL,
    project_id uuid,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (provider, kind, id)
  )`,
  `CREATE INDEX upstream_objects_by_age ON upstream_objects (created_at)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
