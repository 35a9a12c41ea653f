import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { oneTestAtATime } from "../../../src/control/policies/OneTestAtATime.ts"

it.effect("a key tests guardrails one at a time, and rests for as long as a test took", () =>
  Effect.gen(function* () {
    const alone = oneTestAtATime()
    const quick = Effect.succeed("tested")
    const running = yield* Effect.forkChild(alone("one")(Effect.as(Effect.sleep("2 seconds"), "slow")), {
      startImmediately: true
    })
    const busy = Effect.map(Effect.flip(alone("one")(quick)), ({ code }) => code)
    assert.strictEqual(yield* busy, "guardrail_test_busy")
    assert.strictEqual(yield* alone("two")(quick), "tested")
    yield* TestClock.adjust("3 seconds")
    assert.strictEqual(yield* busy, "guardrail_test_busy")
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* Fiber.join(running), "slow")
    assert.strictEqual(yield* alone("one")(quick), "tested")
  })
)

it.effect("four keys test at once, and a test that fails leaves its place", () =>
  Effect.gen(function* () {
    const alone = oneTestAtATime()
    const released = yield* Deferred.make<void, "failed">()
    const running = yield* Effect.forEach(["a", "b", "c", "d"], (key) =>
      Effect.forkChild(alone(key)(Deferred.await(released)), { startImmediately: true })
    )
    const fifth = alone("e")(Effect.succeed("tested"))
    const refused = yield* Effect.flip(fifth)
    assert.strictEqual(refused.code, "guardrail_test_busy")
    yield* Deferred.fail(released, "failed")
    for (const fiber of running) assert.strictEqual(yield* Effect.flip(Fiber.join(fiber)), "failed")
    assert.strictEqual(yield* fifth, "tested")
  })
)
