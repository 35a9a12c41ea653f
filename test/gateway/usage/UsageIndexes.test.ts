import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as UsageIndexes from "../../../src/gateway/usage/UsageIndexes.ts"
import { Database } from "../../../src/services/Database.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"

const tests = (database: typeof EmbeddedDatabase.layer | typeof TemporaryDatabase.layer) =>
  layer(MigratedDatabase.of(database), { excludeTestServices: true })((it) => {
    it.effect("the indexes of usage are built once, and again where an earlier build did not end", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const built = sql<{ readonly name: string }>`
          SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
          WHERE indrelid = 'usage_events'::regclass AND indisvalid AND relname ~ '_by_(subject|end_user|session)$' ORDER BY 1`.pipe(
          Effect.map((rows) => rows.map(({ name }) => name))
        )
        const all = ["usage_events_by_end_user", "usage_events_by_session", "usage_events_by_subject"]
        assert.deepStrictEqual(yield* built, [])
        assert.isTrue(yield* UsageIndexes.build)
        assert.deepStrictEqual(yield* built, all)
        yield* sql`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'usage_events_by_session'::regclass`
        assert.isTrue(yield* UsageIndexes.build)
        assert.deepStrictEqual(yield* built, all)
      })
    )
  })

describe("in the embedded database", () => tests(EmbeddedDatabase.layer))
describe.skipIf(TemporaryDatabase.server === null)("on a server", () => tests(TemporaryDatabase.layer))
