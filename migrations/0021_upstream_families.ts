import { Effect } from "effect"
import { SqlClient } from "effect/sql"

// An upstream may serve one family only: at most one row of each family, and one of both, is enabled.
const statements = [
  `ALTER TABLE provider_configs ADD COLUMN family text CHECK (family IN ('openai', 'anthropic'))`,
  `ALTER TABLE provider_configs ADD CHECK (family IS NULL OR provider = 'upstream')`,
  `DROP INDEX provider_configs_one_enabled_upstream`,
  `CREATE UNIQUE INDEX provider_configs_one_enabled_upstream ON provider_configs (coalesce(family, 'both'))
    WHERE enabled AND provider = 'upstream'`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
