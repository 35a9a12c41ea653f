import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { KeysQuery } from "../../../src/control/api/keys/KeysApi.ts"
import { Audit } from "../../../src/control/audit/Audit.ts"
import { Keys } from "../../../src/control/keys/Keys.ts"
import { Projects } from "../../../src/control/keys/Projects.ts"
import { Database } from "../../../src/services/Database.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import { sequentialScans } from "../../SequentialScans.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"

const size = 20_000

const fixture = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`INSERT INTO projects (name, tags) SELECT 'project ' || i, ARRAY['tag ' || i % 50] FROM generate_series(1, ${size}::int) AS i`
  yield* sql`
    INSERT INTO api_keys (name, owner_email, tags, owner_type, project_id, team_id, key_prefix, key_hash, policy, created_at, last_used_at,
      expires_at, disabled)
    SELECT 'laptop ' || i, 'person' || i % 5000 || '@example.com', ARRAY['tag' || i % 50], 'project', p.id, 'team ' || i % 200,
      'rk_live_' || left(md5(i::text), 8), sha256(i::text::bytea), '{}', now() - i * interval '1 minute',
      CASE WHEN i % 3 > 0 THEN now() - i * interval '1 second' END, CASE WHEN i % 4 = 0 THEN now() + i * interval '1 hour' END, i % 10 = 0
    FROM generate_series(1, ${size}::int) AS i
    JOIN (SELECT id, row_number() OVER () AS n FROM projects) AS p ON p.n = i`
  yield* sql`UPDATE key_spend SET month = date_trunc('month', now()), cost_nanos = random() * 1e12`
  yield* sql`ANALYZE`
})

const stores = Layer.mergeAll(Keys.layer, Projects.layer).pipe(
  Layer.provide(Audit.layer),
  Layer.provideMerge(Layer.effectDiscard(fixture)),
  Layer.provideMerge(MigratedDatabase.of(TemporaryDatabase.layer))
)

describe.skipIf(TemporaryDatabase.server === null)("plans", () => {
  layer(stores, { excludeTestServices: true, timeout: "2 minutes" })("of lists of keys and projects", (it) => {
    it.effect("no list or search of keys or projects reads a whole table", () =>
      Effect.gen(function* () {
        const { list } = yield* Keys
        const projects = yield* Projects
        const [project] = (yield* projects.list({ limit: 1 })).rows
        assert(project !== undefined)
        const filters: ReadonlyArray<KeysQuery> = [
          {},
          { q: "person1717" },
          { q: "nobody" },
          { tag: "tag7" },
          { team_id: "team 3" },
          { project_id: project.id },
          { state: "disabled" },
          { state: "active" },
          { state: "revoked" }
        ]
        for (const filter of filters)
          for (const sort_by of ["created_at", "last_used_at", "expires_at", "rotation_due_at", "spend"] as const)
            for (const sort_order of ["asc", "desc"] as const) {
              const query = { ...filter, sort_by, sort_order, limit: 50 }
              const { result, scanned } = yield* sequentialScans(
                Effect.gen(function* () {
                  const first = yield* list(query)
                  return first.next === undefined ? first : yield* list({ ...query, cursor: first.next })
                })
              )
              assert.notInclude(scanned, "api_keys", JSON.stringify(query))
              if (!("q" in filter) && filter.state !== "revoked") assert.isNotEmpty(result.rows)
            }
        for (const query of [{}, { q: "1717" }, { tag: "tag 7" }])
          assert.deepStrictEqual((yield* sequentialScans(projects.list({ ...query, limit: 50 }))).scanned, [])
      })
    )
  })
})
