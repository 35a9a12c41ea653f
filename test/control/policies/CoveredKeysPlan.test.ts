import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { GuardrailCoverages } from "../../../src/control/policies/GuardrailCoverages.ts"
import { Database } from "../../../src/services/Database.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import { sequentialScans } from "../../SequentialScans.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"

const name = "pii-redact"
const offering = JSON.stringify({ optional_guardrails: ["another", name] })
const demanding = JSON.stringify({ mandatory_guardrails: [name] })

const fixture = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`INSERT INTO projects (name) SELECT 'project ' || i FROM generate_series(1, 200) AS i`
  yield* sql`
    INSERT INTO api_keys (owner_type, project_id, team_id, key_prefix, key_hash, policy, created_at, guardrail_policy)
    SELECT 'project', p.id, 'team ' || i % 200, 'rk_live_' || left(md5(i::text), 8), sha256(i::text::bytea), '{}',
      now() - i * interval '1 minute', CASE WHEN i % 5 = 0 THEN ${offering}::jsonb ELSE '{}' END
    FROM generate_series(1, 20000) AS i
    JOIN (SELECT id, row_number() OVER () AS n FROM projects) AS p ON p.n = 1 + i % 200`
  yield* sql`
    INSERT INTO policy_layers (layer_kind, scope_id, guardrail_policy)
    SELECT 'team', 'team ' || i, ${demanding}::jsonb FROM generate_series(1, 20) AS i`
  yield* sql`ANALYZE`
})

const stores = GuardrailCoverages.layer.pipe(
  Layer.provideMerge(Layer.effectDiscard(fixture)),
  Layer.provideMerge(MigratedDatabase.of(TemporaryDatabase.layer))
)

describe.skipIf(TemporaryDatabase.server === null)("plans", () => {
  layer(stores, { excludeTestServices: true, timeout: "2 minutes" })("of the keys that a guardrail covers", (it) => {
    it.effect("a page of an outcome that many keys have does not read all keys", () =>
      Effect.gen(function* () {
        const coverages = yield* GuardrailCoverages
        for (const query of [{}, ...(["mandatory", "optional", "none"] as const).map((outcome) => ({ outcome }))]) {
          const { result, scanned } = yield* sequentialScans(
            Effect.flatMap(coverages.keys(name, query), ({ next }) =>
              coverages.keys(name, { ...query, ...(next !== undefined && { cursor: next }) })
            )
          )
          assert.notInclude(scanned, "api_keys", JSON.stringify(query))
          assert.strictEqual(result.rows.length, 100)
        }
      })
    )
  })
})
