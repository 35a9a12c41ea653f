import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const tables = ["canonical_routes", "upstream_passthrough_settings"]

// Applies max_response_body_bytes to event streams too. True once an operator has set the limit; a limit that differs
// from the default was set by one.
const statements = tables.flatMap((table) => [
  `ALTER TABLE ${table} ADD COLUMN limits_streams boolean NOT NULL DEFAULT false`,
  `UPDATE ${table} SET limits_streams = true WHERE max_response_body_bytes <> 1048576`
])

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
