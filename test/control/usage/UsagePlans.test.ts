import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { UsageFilter } from "../../../src/control/api/usage/UsageApi.ts"
import * as UsageSql from "../../../src/control/usage/UsageSql.ts"
import * as LateIndexes from "../../../src/gateway/LateIndexes.ts"
import { Database } from "../../../src/services/Database.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"

/** Requests of a day, of which few have what is looked for. */
const fixture = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`
    INSERT INTO usage_events (id, created_at, request_id, key_id, route, provider, status, status_code, error_code, latency_ms, usage_source,
      session_id, end_user, subject, denial, cost_source, streamed)
    SELECT gen_random_uuid(), now() - i * interval '4 seconds', 'request ' || i, gen_random_uuid(), 'chat_completions', 'upstream',
      'success', 200, CASE WHEN i % 40 = 0 THEN 'error ' || i % 400 END, 5, 'reported', 'session ' || i / 20, 'user ' || i % 500,
      'subject ' || i % 500, CASE WHEN i % 40 = 0 THEN jsonb_build_object('check', 'check ' || i % 400) END, 'none', false
    FROM generate_series(1, 20000) AS i`
  yield* LateIndexes.build
  yield* sql`ANALYZE usage_events`
})

const database = Layer.provideMerge(Layer.effectDiscard(fixture), MigratedDatabase.of(TemporaryDatabase.layer))

const searches: ReadonlyArray<readonly [filter: UsageFilter, index: string]> = [
  [{ request_id: "request 7" }, "usage_events_by_request"],
  [{ session_id: "session 7" }, "usage_events_by_session"],
  [{ end_user: "user 7" }, "usage_events_by_end_user"],
  [{ subject: "subject 7" }, "usage_events_by_subject"],
  [{ error_code: "error 40" }, "usage_events_by_error"],
  [{ error_code: "no such error" }, "usage_events_by_error"],
  [{ denied_by: "check 40" }, "usage_events_by_denial"],
  [{ denied_by: "no such check" }, "usage_events_by_denial"]
]

describe.skipIf(TemporaryDatabase.server === null)("plans", () => {
  layer(database, { excludeTestServices: true, timeout: "2 minutes" })("of searches of requests", (it) => {
    it.effect("what few requests have in common is summed up without reading the others", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const { singleEvents } = UsageSql.make(sql)
        const day = { start: Date.now() - 86_400_000, end: Number.POSITIVE_INFINITY }
        for (const [filter, index] of searches)
          for (const events of singleEvents(filter, [day])) {
            const plan = yield* sql<{
              readonly "QUERY PLAN": string
            }>`EXPLAIN SELECT count(*) FROM (${events}) AS matching`
            assert.include(plan.map((line) => line["QUERY PLAN"]).join("\n"), index, JSON.stringify(filter))
          }
      })
    )
  })
})
