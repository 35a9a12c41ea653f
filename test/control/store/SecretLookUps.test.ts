import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as SecretLookUps from "../../../src/control/store/SecretLookUps.ts"

describe("look-ups of secrets", () => {
  it.effect("ask once a second for a secret that nobody has", () =>
    Effect.gen(function* () {
      const asked: Array<ReadonlyArray<string>> = []
      const lookUp = yield* SecretLookUps.make("keys", (digests) =>
        Effect.sync(() => {
          asked.push(digests)
          return digests.includes("known") ? "key" : undefined
        })
      )
      for (let i = 0; i < 5; i++) assert.isUndefined(yield* lookUp(["wrong", "other"], "a"))
      assert.deepStrictEqual(asked, [["wrong", "other"]])
      assert.strictEqual(yield* lookUp(["wrong", "new", "known"], "a"), "key")
      assert.deepStrictEqual(asked.at(-1), ["new", "known"])
      yield* TestClock.adjust("1 second")
      assert.isUndefined(yield* lookUp(["wrong"], "b"))
      assert.strictEqual(yield* lookUp(["known"], "a"), "key")
      assert.strictEqual(yield* lookUp(["known"], "a"), "key")
      assert.lengthOf(asked, 5)
    }).pipe(Effect.scoped)
  )

  it.effect("of one address leave room for others, and wait for two seconds", () =>
    Effect.gen(function* () {
      const free = yield* Deferred.make<void>()
      let running = 0
      const lookUp = yield* SecretLookUps.make("keys", () =>
        Effect.andThen(
          Effect.sync(() => running++),
          Effect.as(Deferred.await(free), "key")
        )
      )
      const flood = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, n) => `wrong ${n}`),
        (digest) => Effect.forkChild(Effect.exit(lookUp([digest], "flooding")))
      )
      const other = yield* Effect.forkChild(lookUp(["known"], "other"))
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(running, 3)
      yield* Deferred.succeed(free, undefined)
      assert.strictEqual(yield* Fiber.join(other), "key")
      const ended = yield* Effect.forEach(flood, Fiber.join)
      assert.lengthOf(
        ended.filter(({ _tag }) => _tag === "Success"),
        2
      )
    }).pipe(Effect.scoped)
  )
})
