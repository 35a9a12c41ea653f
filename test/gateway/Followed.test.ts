import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Followed } from "../../src/process/Followed.ts"

it.effect("a change is waited for until the gateway says that it knows it, and no longer than three seconds", () =>
  Effect.gen(function* () {
    const { reached, report } = yield* Followed
    // no gateway yet: there is nothing to wait for
    yield* reached(7)
    report(7)
    yield* reached(7)
    const [eighth, ninth] = [yield* Effect.forkChild(reached(8)), yield* Effect.forkChild(reached(9))]
    yield* Effect.yieldNow
    report(8)
    yield* Fiber.join(eighth)
    assert.isUndefined(ninth.pollUnsafe())
    yield* TestClock.adjust("2999 millis")
    assert.isUndefined(ninth.pollUnsafe())
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(ninth)
  }).pipe(Effect.provide(Followed.layer))
)
