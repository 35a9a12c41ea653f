import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Columns that services, guardrails and policies add to a record. `denial` is the check that refused the request, and
  // its policy layer.
  `ALTER TABLE usage_events
    ADD COLUMN service_name text,
    ADD COLUMN http_method text,
    ADD COLUMN endpoint_path text,
    ADD COLUMN endpoint_template text,
    ADD COLUMN cost_mode text,
    ADD COLUMN pricing_rule_name text,
    ADD COLUMN policy_version bigint,
    ADD COLUMN tools boolean,
    ADD COLUMN estimated_input_tokens bigint,
    ADD COLUMN denial jsonb,
    ADD COLUMN guardrail_action_count integer`,

  // For look-ups of the decision about one request.
  `CREATE INDEX usage_events_by_request ON usage_events (request_id, created_at DESC)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
