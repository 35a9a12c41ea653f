import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as KeyCache from "../../../src/gateway/snapshot/KeyCache.ts"
import type { KeyRecord } from "../../../src/gateway/snapshot/KeyRecord.ts"
import * as KeyRecords from "../KeyRecords.ts"

describe("KeyCache", () => {
  it.effect("asks once for a key, however many ask, and never again for one that it knows", () =>
    Effect.gen(function* () {
      const store = yield* storeOf((digest) => Effect.succeed(Option.some(recordOf(digest))))
      const ask = store.cache.get("d-1")
      const found = yield* Effect.all(
        Array.from({ length: 50 }, () => ask),
        { concurrency: "unbounded" }
      )
      yield* TestClock.adjust("40 days")
      assert.deepStrictEqual(
        [...found, yield* ask],
        Array.from({ length: 51 }, () => Option.some(recordOf("d-1")))
      )
      assert.deepStrictEqual(store.asked, ["d-1"])
    })
  )

  it.effect("remembers for a second that there is no such key", () =>
    Effect.gen(function* () {
      const store = yield* storeOf(() => Effect.succeed(Option.none()))
      for (const wait of [0, 500, 499]) {
        yield* TestClock.adjust(wait)
        assert.deepStrictEqual(yield* store.cache.get("d-1"), Option.none())
      }
      assert.lengthOf(store.asked, 1)
      yield* TestClock.adjust(1)
      yield* store.cache.get("d-1")
      assert.lengthOf(store.asked, 2)
    })
  )

  it.effect("remembers no failure: the next who asks may be luckier", () =>
    Effect.gen(function* () {
      let gone = true
      const store = yield* storeOf((digest) =>
        gone
          ? Effect.fail(new KeyCache.ControlStateUnavailable({ cause: "gone" }))
          : Effect.succeed(Option.some(recordOf(digest)))
      )
      assert.strictEqual((yield* Effect.flip(store.cache.get("d-1")))._tag, "ControlStateUnavailable")
      gone = false
      assert.isTrue(Option.isSome(yield* store.cache.get("d-1")))
    })
  )

  it.effect("whoever asks of a silent database is told within two seconds, however many asked before", () =>
    Effect.gen(function* () {
      const store = yield* storeOf(() => Effect.never)
      for (let n = 0; n < 2_000; n++) yield* asking(store.cache.get(`wrong-${n}`, `address-${n % 8}`))
      const asked = yield* asking(Effect.flip(store.cache.get("right", "another address")))
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* Fiber.join(asked))._tag, "ControlStateUnavailable")
      // nobody waits for the others any more
      assert.lengthOf(store.asked, 4)
    })
  )

  it.effect("a flood of wrong keys is a few statements, and a right key behind it is among the first", () =>
    Effect.gen(function* () {
      const answer = yield* Deferred.make<void>()
      const store = yield* storeOf((digest) =>
        Effect.as(Deferred.await(answer), digest === "right" ? Option.some(recordOf(digest)) : Option.none())
      )
      for (let n = 0; n < 2_000; n++) yield* asking(store.cache.get(`wrong-${n}`, "one address"))
      const right = yield* asking(store.cache.get("right", "another address"))
      yield* Deferred.succeed(answer, undefined)
      assert.isTrue(Option.isSome(yield* Fiber.join(right)))
      // the first four come alone, because nobody waits yet
      assert.strictEqual(store.statements(), 4 + Math.ceil((2_001 - 4) / 256))
    })
  )

  it.effect("one address fills its share of the line only, and then is told at once", () =>
    Effect.gen(function* () {
      const store = yield* storeOf(() => Effect.never)
      for (let n = 0; n < 2_048 + 4; n++) yield* asking(store.cache.get(`wrong-${n}`, "one address"))
      const refused = yield* Effect.flip(store.cache.get("one more", "one address"))
      assert.strictEqual(refused._tag, "ControlStateUnavailable")
      const other = yield* asking(store.cache.get("right", "another address"))
      assert.isUndefined(other.pollUnsafe())
    })
  )

  it.effect("many addresses that fill their shares of the line leave places to another one", () =>
    Effect.gen(function* () {
      const store = yield* storeOf(() => Effect.never)
      for (let address = 0; address < 8; address++) {
        for (let n = 0; n < 2_048; n++) yield* asking(store.cache.get(`wrong-${address}-${n}`, `address ${address}`))
      }
      const right = yield* asking(store.cache.get("right", "another address"))
      assert.isUndefined(right.pollUnsafe())
    })
  )

  it.effect("answers the others when the one who asked first hangs up", () =>
    Effect.gen(function* () {
      const answer = yield* Deferred.make<void>()
      const store = yield* storeOf((digest) => Effect.as(Deferred.await(answer), Option.some(recordOf(digest))))
      const [first, second] = [yield* asking(store.cache.get("d-1")), yield* asking(store.cache.get("d-1"))]
      yield* Fiber.interrupt(first)
      yield* Deferred.succeed(answer, undefined)
      assert.deepStrictEqual(yield* Fiber.join(second), Option.some(recordOf("d-1")))
      assert.lengthOf(store.asked, 1)
    })
  )

  it.effect("forgets one key, the keys of one project, or all", () =>
    Effect.gen(function* () {
      const projects = new Map([
        ["d-1", "p-1"],
        ["d-2", "p-1"],
        ["d-3", "p-2"],
        ["d-4", undefined]
      ])
      const store = yield* storeOf((digest) =>
        Effect.succeed(Option.some({ ...recordOf(digest), projectId: Option.fromUndefinedOr(projects.get(digest)) }))
      )
      const askedAgainAfter = (forget: () => void) =>
        Effect.gen(function* () {
          forget()
          const before = store.asked.length
          yield* Effect.forEach(projects.keys(), (digest) => store.cache.get(digest))
          return store.asked.slice(before)
        })
      const all = [...projects.keys()]
      assert.deepStrictEqual(yield* askedAgainAfter(() => {}), all)
      assert.deepStrictEqual(yield* askedAgainAfter(() => store.cache.forget("id of d-2")), ["d-2"])
      assert.deepStrictEqual(yield* askedAgainAfter(() => store.cache.forgetProject("p-1")), ["d-1", "d-2"])
      assert.deepStrictEqual(yield* askedAgainAfter(() => store.cache.forget("id of nobody")), [])
      assert.deepStrictEqual(yield* askedAgainAfter(store.cache.forgetAll), all)
    })
  )

  it.effect("a key with several secrets is forgotten under each of them", () =>
    Effect.gen(function* () {
      const store = yield* storeOf((digest) => Effect.succeed(Option.some({ ...recordOf(digest), id: "one" })))
      const secrets = ["before", "now", "of a rotation that no notice told of yet"]
      const ask = Effect.forEach(secrets, (digest) => store.cache.get(digest))
      yield* ask
      yield* ask
      assert.deepStrictEqual(store.asked, secrets)
      store.cache.forget("one")
      yield* ask
      assert.deepStrictEqual(store.asked, [...secrets, ...secrets])
    })
  )

  it.effect("knows 50,000 keys, and forgets the one that was not asked for longest", () =>
    Effect.gen(function* () {
      const store = yield* storeOf((digest) => Effect.succeed(Option.some(recordOf(digest))))
      yield* Effect.forEach(
        Array.from({ length: 50_000 }, (_, n) => `d-${n}`),
        (digest) => store.cache.get(digest),
        { discard: true }
      )
      yield* Effect.forEach(["d-0", "one more"], (digest) => store.cache.get(digest))
      yield* Effect.forEach(["d-0", "one more", "d-49999", "d-2"], (digest) => store.cache.get(digest))
      assert.lengthOf(store.asked, 50_001)
      yield* store.cache.get("d-1")
      assert.strictEqual(store.asked.at(-1), "d-1")
    })
  )

  it.effect("no flood of wrong keys drives a right one out", () =>
    Effect.gen(function* () {
      const store = yield* storeOf((digest) =>
        Effect.succeed(digest === "right" ? Option.some(recordOf(digest)) : Option.none())
      )
      yield* store.cache.get("right")
      yield* Effect.forEach(
        Array.from({ length: 60_000 }, (_, n) => `wrong-${n}`),
        (digest) => store.cache.get(digest),
        { discard: true }
      )
      yield* store.cache.get("right")
      assert.lengthOf(store.asked, 60_001)
    })
  )

  it.effect(
    "whatever is asked, answered and edited in which order: nobody gets a record older than the last edit before they asked",
    () =>
      Effect.gen(function* () {
        const promise = Effect.runPromiseWith(yield* Effect.context<never>())
        const law = fc.asyncProperty(
          fc.array(fc.constantFrom("ask", "answer", "edit", "project edit", "reload"), { maxLength: 30 }),
          (actions) => promise(Effect.scoped(play(actions)))
        )
        yield* Effect.promise(() => fc.assert(law, { numRuns: 200 }))
      })
  )
})

/** Each load reads the current version at once, and is answered when its turn comes. */
const play = Effect.fnUntraced(function* (actions: ReadonlyArray<string>) {
  let version = 0
  const unanswered: Array<Deferred.Deferred<void>> = []
  const { cache } = yield* storeOf((digest) =>
    Effect.suspend(() => {
      const answer = Deferred.makeUnsafe<void>()
      unanswered.push(answer)
      return Effect.as(
        Deferred.await(answer),
        Option.some({
          ...recordOf(digest),
          projectId: Option.some("p-1"),
          ownLayer: { ...recordOf(digest).ownLayer, version }
        })
      )
    })
  )
  const askers: Array<{ readonly since: number; readonly fiber: Fiber.Fiber<Option.Option<KeyRecord>, unknown> }> = []
  const answerNext = Effect.suspend(() => {
    const next = unanswered.shift()
    return next === undefined ? Effect.void : Deferred.succeed(next, undefined)
  }).pipe(Effect.andThen(settled))
  for (const action of actions) {
    if (action === "ask") askers.push({ since: version, fiber: yield* asking(cache.get("d-1")) })
    else if (action === "answer") yield* answerNext
    else {
      version++
      if (action === "edit") cache.forget("id of d-1")
      else if (action === "project edit") cache.forgetProject("p-1")
      else cache.forgetAll()
    }
  }
  for (const { fiber, since } of askers) {
    yield* Effect.repeat(answerNext, { until: () => fiber.pollUnsafe() !== undefined })
    assert.isAtLeast(Option.getOrThrow(yield* Fiber.join(fiber)).ownLayer.version, since)
  }
})

type Loaded = Option.Option<KeyRecord>

const storeOf = Effect.fnUntraced(function* (
  load: (digest: string) => Effect.Effect<Loaded, KeyCache.ControlStateUnavailable>
) {
  const asked: Array<string> = []
  let statements = 0
  const counted = (digests: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      statements++
      asked.push(...digests)
      const found = yield* Effect.forEach(
        digests,
        (digest) => Effect.map(load(digest), (one) => [digest, one] as const),
        {
          concurrency: "unbounded"
        }
      )
      return new Map(found.flatMap(([digest, one]) => (Option.isSome(one) ? [[digest, one.value] as const] : [])))
    })
  return { asked, statements: () => statements, cache: KeyCache.make(counted, yield* Effect.scope) }
})

const asking = <A, E>(ask: Effect.Effect<A, E>) => Effect.forkChild(ask, { startImmediately: true })

/** Until every fiber that can go on has gone on. */
const settled = Effect.repeat(Effect.yieldNow, { times: 10 })

const recordOf = (digest: string) => KeyRecords.recordOf({ id: `id of ${digest}` })
