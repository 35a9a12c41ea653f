import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // Finds the last document that was applied, also in a log of millions of other events.
  `CREATE INDEX audit_events_of_applies ON audit_events (sequence) WHERE action = 'configuration:apply'`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
