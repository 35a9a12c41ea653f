import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // An operator has forgiven this much of the usage of a window: a counter that is restored from the usage records is
  // lower by this amount. scope, counter and window_id are the parts of the counter's name in Redis. Older versions do not
  // read it: where they restore a lost counter, all the usage of its window counts.
  `CREATE TABLE limit_resets (
    scope text NOT NULL,
    counter text NOT NULL,
    window_id text NOT NULL,
    forgiven bigint NOT NULL,
    ends_at timestamptz NOT NULL,
    PRIMARY KEY (scope, counter, window_id)
  )`,
  `CREATE INDEX limit_resets_by_end ON limit_resets (ends_at)`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
