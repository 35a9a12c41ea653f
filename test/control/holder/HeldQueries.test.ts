import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { eventually } from "../../Eventually.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"
import * as Listener from "../Listener.ts"
import { admin, at, call, ok } from "../Listener.ts"
import * as Metered from "../limits/Metered.ts"

describe.skipIf(TemporaryDatabase.server === null)("on a server", () => {
  layer(Listener.layer(TemporaryDatabase.layer), { excludeTestServices: true })("The usage that holders see", (it) => {
    it.effect("leaves operators a place for queries, however many holders ask for a slow one", () =>
      Effect.gen(function* () {
        const { sql, transaction } = yield* Database
        const keys = yield* Effect.forEach([1, 2, 3, 4], () => Metered.newKey({}))
        const ask = ({ raw }: Metered.HeldKey) =>
          call("GET", "/admin-ui/v1/me/usage", { authorization: `Bearer ${raw}` })
        const waiting = Effect.map(
          sql<{ readonly n: number }>`SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted`,
          ([row]) => row?.n ?? 0
        )
        const holders = yield* transaction(
          Effect.gen(function* () {
            yield* sql`LOCK TABLE usage_rollups IN ACCESS EXCLUSIVE MODE`
            const asked = yield* Effect.forEach(keys, (key) => Effect.forkChild(ask(key)))
            yield* eventually(waiting, (n) => n === 2)
            assert.deepStrictEqual(at(yield* ok("GET", `${admin}/guardrails/executions`), "executions"), [])
            return asked
          })
        )
        for (const holder of holders) assert.strictEqual((yield* Fiber.join(holder)).status, 200)
      })
    )
  })
})
