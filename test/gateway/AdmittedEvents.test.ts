import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../src/services/Database.ts"
import { admittedEvent, isAdmitted } from "../../src/state/UsageSums.ts"
import * as Proxy from "./Proxy.ts"

const codes = [null, "upstream_timeout", "response_body_too_large", "guardrail_blocked", "rate_limit_exceeded", "_"]

layer(Proxy.database)("An event that limits on requests have counted", (it) => {
  it.effect("is told alike in the table and in the queue", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const rows = yield* sql<{ admitted: boolean }>`SELECT (${sql.literal(admittedEvent)}) AS admitted
        FROM unnest(${codes}::text[]) WITH ORDINALITY AS event (error_code, place) ORDER BY place`
      assert.deepStrictEqual(
        rows.map(({ admitted }) => admitted),
        [true, true, true, true, false, false]
      )
      assert.deepStrictEqual(
        codes.map((code) => isAdmitted(code ?? "")),
        rows.map(({ admitted }) => admitted)
      )
    })
  )
})
