import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as LateIndexes from "../../src/gateway/LateIndexes.ts"
import { Database } from "../../src/services/Database.ts"
import * as EmbeddedDatabase from "../EmbeddedDatabase.ts"
import * as MigratedDatabase from "../MigratedDatabase.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"

const tests = (database: typeof EmbeddedDatabase.layer | typeof TemporaryDatabase.layer) =>
  layer(MigratedDatabase.of(database), { excludeTestServices: true })((it) => {
    it.effect("the indexes of large tables are built once, and again where an earlier build did not end", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const built = sql<{ readonly name: string }>`
          SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
          WHERE indisvalid AND relname ~ '^(usage|audit)_events_by_(action|subject|end_user|session|error|denial)$' ORDER BY 1`.pipe(
          Effect.map((rows) => rows.map(({ name }) => name))
        )
        const ofUsage = ["denial", "end_user", "error", "session", "subject"].map(
          (column) => `usage_events_by_${column}`
        )
        const all = ["audit_events_by_action", ...ofUsage]
        assert.deepStrictEqual(yield* built, [])
        assert.isTrue(yield* LateIndexes.build)
        assert.deepStrictEqual(yield* built, all)
        yield* sql`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'usage_events_by_session'::regclass`
        assert.isTrue(yield* LateIndexes.build)
        assert.deepStrictEqual(yield* built, all)
      })
    )
  })

describe("in the embedded database", () => tests(EmbeddedDatabase.layer))
describe.skipIf(TemporaryDatabase.server === null)("on a server", () => tests(TemporaryDatabase.layer))
