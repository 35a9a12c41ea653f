import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as ConcurrencyLimit from "../../src/services/ConcurrencyLimit.ts"

/** Work in a place, until it is released. */
const working = Effect.fnUntraced(function* (options: Omit<ConcurrencyLimit.Options, "maxWait">) {
  const places = yield* ConcurrencyLimit.make({ ...options, maxWait: "10 seconds" })
  const released = yield* Deferred.make<void>()
  const begun: Array<string> = []
  const work = (caller: string) =>
    places.acquire(caller).pipe(
      Effect.tap(() => Effect.sync(() => begun.push(caller))),
      Effect.andThen(Deferred.await(released)),
      Effect.scoped,
      Effect.forkChild({ startImmediately: true })
    )
  return { begun, work, release: Deferred.succeed(released, undefined) }
})

it.effect("a caller that has all of its places leaves the others to other callers", () =>
  Effect.gen(function* () {
    const { begun, release, work } = yield* working({ maxTotal: 3, maxPerCaller: 2 })
    const asked = yield* Effect.forEach(["a", "a", "a", "a", "b", "c"], work)
    assert.deepStrictEqual(begun, ["a", "a", "b"])
    yield* release
    yield* Fiber.joinAll(asked)
    assert.deepStrictEqual(begun.toSorted(), ["a", "a", "a", "a", "b", "c"])
  }).pipe(Effect.scoped)
)

it.effect("a caller that finds no place in time is told whose places are taken", () =>
  Effect.gen(function* () {
    const { begun, release, work } = yield* working({ maxTotal: 2, maxPerCaller: 1 })
    const running = yield* Effect.forEach(["a", "b"], work)
    const late = yield* Effect.forEach(["a", "c"], work)
    yield* TestClock.adjust("9 seconds")
    assert.isTrue(late.every((fiber) => fiber.pollUnsafe() === undefined))
    yield* TestClock.adjust("1 second")
    const whose = yield* Effect.forEach(late, (fiber) => Effect.map(Effect.flip(Fiber.join(fiber)), (no) => no.whose))
    assert.deepStrictEqual(whose, ["caller", "process"])
    yield* release
    yield* Fiber.joinAll(running)
    // those that were refused hold nothing
    yield* Fiber.joinAll(yield* Effect.forEach(["a", "c"], work))
    assert.deepStrictEqual(begun, ["a", "b", "a", "c"])
  }).pipe(Effect.scoped)
)
