import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { AppliedEpoch } from "../../src/process/AppliedEpoch.ts"

it.effect("a change is waited for until the gateway says that it knows it, and no longer than three seconds", () =>
  Effect.gen(function* () {
    const { waitFor, report } = yield* AppliedEpoch
    // no gateway yet: there is nothing to wait for
    yield* waitFor(7)
    report(7)
    yield* waitFor(7)
    const [eighth, ninth] = [yield* Effect.forkChild(waitFor(8)), yield* Effect.forkChild(waitFor(9))]
    yield* Effect.yieldNow
    report(8)
    yield* Fiber.join(eighth)
    assert.isUndefined(ninth.pollUnsafe())
    yield* TestClock.adjust("2999 millis")
    assert.isUndefined(ninth.pollUnsafe())
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(ninth)
  }).pipe(Effect.provide(AppliedEpoch.layer))
)
