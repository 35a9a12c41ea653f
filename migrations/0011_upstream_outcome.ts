import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // What a record says of the upstream: how long it took in all, and why the first that was asked did not answer.
  `ALTER TABLE usage_events
    ADD COLUMN upstream_ms bigint,
    ADD COLUMN fallback_reason text`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
