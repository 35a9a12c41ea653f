import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const tables = ["canonical_routes", "upstream_passthrough_settings"]

// Whether max_response_body_bytes counts for event streams too: from when an operator sets it. What differs from the
// default was set by one.
const statements = tables.flatMap((table) => [
  `ALTER TABLE ${table} ADD COLUMN limits_streams boolean NOT NULL DEFAULT false`,
  `UPDATE ${table} SET limits_streams = true WHERE max_response_body_bytes <> 1048576`
])

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
