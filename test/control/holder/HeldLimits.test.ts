import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { Redis } from "../../../src/services/Redis.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import * as Listener from "../Listener.ts"
import { at, ok } from "../Listener.ts"
import * as Metered from "../limits/Metered.ts"

/** How often counters of a key are being read at once, at most. They are read once `other` is read too. */
class Reads extends Context.Service<
  Reads,
  { ids: Array<string>; most: number; readonly first: Deferred.Deferred<void>; readonly both: Deferred.Deferred<void> }
>()("test/Reads") {}

const reads = Layer.effect(
  Reads,
  Effect.gen(function* () {
    return { ids: [], most: 0, first: yield* Deferred.make<void>(), both: yield* Deferred.make<void>() }
  })
)

const watched = Layer.effect(
  Redis,
  Effect.gen(function* () {
    const redis = yield* Redis
    const state = yield* Reads
    let running = 0
    return Redis.of({
      ...redis,
      run: (...given) => {
        const [key, other] = state.ids
        const text = JSON.stringify(given)
        if (other !== undefined && text.includes(other)) {
          return Effect.andThen(Deferred.succeed(state.both, undefined), redis.run(...given))
        }
        if (key === undefined || !text.includes(key)) return redis.run(...given)
        state.most = Math.max(state.most, ++running)
        return Deferred.succeed(state.first, undefined).pipe(
          Effect.andThen(Deferred.await(state.both)),
          Effect.andThen(redis.run(...given)),
          Effect.ensuring(Effect.sync(() => running--))
        )
      }
    })
  })
).pipe(Layer.provide(RedisMemory.layer({ prefix: "test:" })), Layer.provideMerge(reads))

layer(Listener.layer(EmbeddedDatabase.layer, { redis: watched }).pipe(Layer.provideMerge(reads)), {
  excludeTestServices: true
})("The limits that holders see", (it) => {
  it.effect("are read once at a time for a key, and other keys do not wait for it", () =>
    Effect.gen(function* () {
      const state = yield* Reads
      const mine = yield* Metered.newKey({ policy: { daily_budget_usd: 1 } })
      const other = yield* Metered.newKey({ policy: { daily_budget_usd: 1 } })
      state.ids = [mine.id, other.id]
      const read = ({ raw }: Metered.HeldKey) => ok("GET", "/admin-ui/v1/me/limits", { authorization: `Bearer ${raw}` })
      const first = yield* Effect.forkChild(read(mine))
      yield* Deferred.await(state.first)
      yield* Metered.priced
      const models = yield* ok("GET", "/admin-ui/v1/me/models", { authorization: `Bearer ${mine.raw}` })
      assert.deepStrictEqual([at(models, "priced", 0, "model"), at(models, "used")], [Metered.model, []])
      const more = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(read(mine)))
      assert.lengthOf(Metered.listed(yield* read(other)), 1)
      for (const one of [first, ...more]) assert.lengthOf(Metered.listed(yield* Fiber.join(one)), 1)
      assert.strictEqual(state.most, 1)
    })
  )
})
