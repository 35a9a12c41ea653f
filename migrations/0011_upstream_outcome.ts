import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The total time of the upstream, and the reason why the first upstream did not respond.
  `ALTER TABLE usage_events
    ADD COLUMN upstream_ms bigint,
    ADD COLUMN fallback_reason text`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
