import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Database } from "../../src/services/Database.ts"
import { eventually } from "../Eventually.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"
import { admin, at, call, layer as listener, ok } from "./Listener.ts"

/** What waits for a lock: of each query whether it asks how providers are. */
const waiting = Effect.gen(function* () {
  const { sql } = yield* Database
  const found = yield* sql`SELECT query LIKE '%error_count%' AS of_health FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database() ORDER BY 1`
  return found.map((row) => row["of_health"])
})

describe.skipIf(TemporaryDatabase.server === null)("usage queries on a server", () => {
  layer(listener(TemporaryDatabase.layer), { excludeTestServices: true })((it) => {
    it.effect("however many wait for the database, they leave a turn to other tokens, and sessions to everybody", () =>
      Effect.gen(function* () {
        const { sql, transaction } = yield* Database
        const made = yield* ok("POST", `${admin}/operator-tokens`, { body: { name: "other", scopes: ["usage:read"] } })
        const locked = yield* Deferred.make<void>()
        const released = yield* Deferred.make<void>()
        const holder = yield* Effect.forkChild(
          transaction(
            sql`LOCK TABLE usage_events IN ACCESS EXCLUSIVE MODE`.pipe(
              Effect.andThen(Deferred.succeed(locked, undefined)),
              Effect.andThen(Deferred.await(released))
            )
          )
        )
        yield* Deferred.await(locked)
        const asked = yield* Effect.forEach(Array.from({ length: 12 }), () =>
          Effect.forkChild(call("GET", `${admin}/provider-health`), { startImmediately: true })
        )
        yield* eventually(waiting, ({ length }) => length >= 2)
        const other = yield* Effect.forkChild(
          call("GET", `${admin}/usage/summary`, { authorization: `Bearer ${at(made, "raw_token")}` }),
          { startImmediately: true }
        )
        assert.deepStrictEqual(yield* eventually(waiting, ({ length }) => length >= 3), [false, true, true])
        // of ten sessions one holds the lock, and three wait for it
        for (let i = 0; i < 3; i++) assert.strictEqual((yield* call("GET", `${admin}/projects`)).status, 200)
        assert.isTrue([...asked, other].every((fiber) => fiber.pollUnsafe() === undefined))
        yield* Deferred.succeed(released, undefined)
        yield* Fiber.join(holder)
        for (const fiber of [...asked, other]) assert.strictEqual((yield* Fiber.join(fiber)).status, 200)
      })
    )
  })
})
