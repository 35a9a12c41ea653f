import { assert, describe, it, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { inTurn } from "../../src/control/Usage.ts"
import { Database } from "../../src/services/Database.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"
import { admin, call, layer as listener } from "./Listener.ts"

it.effect("whose turn does not come within ten seconds is told so, and the others go on", () =>
  Effect.gen(function* () {
    const released = yield* Deferred.make<void>()
    const running = yield* Effect.forEach(Array.from({ length: 3 }), () =>
      Effect.forkChild(inTurn(Deferred.await(released)), { startImmediately: true })
    )
    const fourth = yield* Effect.forkChild(Effect.flip(inTurn(Effect.die("it has no turn"))), {
      startImmediately: true
    })
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual((yield* Fiber.join(fourth)).code, "store_unavailable")
    yield* Deferred.succeed(released, undefined)
    for (const fiber of running) yield* Fiber.join(fiber)
    assert.strictEqual(yield* inTurn(Effect.succeed("a turn")), "a turn")
  })
)

describe.skipIf(TemporaryDatabase.server === null)("usage queries on a server", () => {
  layer(listener(TemporaryDatabase.layer), { excludeTestServices: true })((it) => {
    it.effect("however many wait for the database, they leave sessions to everybody else", () =>
      Effect.gen(function* () {
        const { sql, transaction } = yield* Database
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
        const asked = yield* Effect.forEach(Array.from({ length: 12 }), (_, index) =>
          Effect.forkChild(call("GET", `${admin}/${index % 2 === 0 ? "provider-health" : "usage/summary"}`), {
            startImmediately: true
          })
        )
        // of ten sessions one holds the lock, and three wait for it
        for (let i = 0; i < 3; i++) assert.strictEqual((yield* call("GET", `${admin}/projects`)).status, 200)
        assert.isTrue(asked.every((fiber) => fiber.pollUnsafe() === undefined))
        yield* Deferred.succeed(released, undefined)
        yield* Fiber.join(holder)
        for (const fiber of asked) assert.strictEqual((yield* Fiber.join(fiber)).status, 200)
      })
    )
  })
})
