import { Effect } from "effect"
import { SqlClient } from "effect/sql"

// How an HTTP guardrail judges an event stream. Rows of older versions get the defaults.
const statements = [
  `ALTER TABLE guardrail_definitions
    ADD COLUMN stream_mode text NOT NULL DEFAULT 'buffer' CHECK (stream_mode IN ('buffer', 'window')),
    ADD COLUMN window_chars integer NOT NULL DEFAULT 512 CHECK (window_chars BETWEEN 64 AND 16384)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
