import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // `policy` and `guardrail_policy` are validated wire forms. The request path reads them as a whole. The scope is a
  // project id, a team or model name, or a route; only the global layer has none.
  `CREATE TABLE policy_layers (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    layer_kind text NOT NULL CHECK (layer_kind IN ('global', 'project', 'team', 'route', 'model')),
    scope_id text,
    policy jsonb NOT NULL DEFAULT '{}',
    guardrail_policy jsonb NOT NULL DEFAULT '{}',
    policy_version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((layer_kind = 'global') = (scope_id IS NULL))
  )`,
  `CREATE UNIQUE INDEX policy_layers_by_scope ON policy_layers (layer_kind, coalesce(scope_id, ''))`,
  // The start of the unused-key timer of a key that was disabled as unused and enabled again.
  `ALTER TABLE api_keys
    ADD COLUMN team_id text CHECK (char_length(team_id) BETWEEN 1 AND 128),
    ADD COLUMN guardrail_policy jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN enabled_at timestamptz`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
