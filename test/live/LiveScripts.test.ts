import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import fc from "fast-check"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import * as LiveScripts from "../../src/live/LiveScripts.ts"
import { Redis } from "../../src/services/Redis.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"

describe.skipIf(TemporaryPrefix.server === null)("the scripts' Lua and their TypeScript", () => {
  it.live("return the same for any sequence of calls, and leave the same batches", () =>
    Effect.gen(function* () {
      const lua = Context.get(yield* Layer.build(TemporaryPrefix.layer), Redis)
      const typescript = Context.get(yield* Layer.build(RedisMemory.layer()), Redis)
      const same = fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 20 }), async (actions) => {
        const run = randomUUID()
        const played = (redis: Redis["Service"]) =>
          Effect.runPromise(Effect.forEach(actions, (action) => play(redis, run, action)))
        assert.deepStrictEqual(await played(typescript), await played(lua))
      })
      yield* Effect.promise(() => fc.assert(same, { numRuns: 60 }))
    }).pipe(Effect.scoped)
  )
})

const topic = fc.constantFrom("requests", "tasks")
const some = fc.uniqueArray(topic, { minLength: 1 })

const action = fc.oneof(
  fc.record({ _tag: fc.constant("Renew" as const), topics: some, first: fc.constantFrom(1_000, 1.7e15) }),
  fc.record({ _tag: fc.constant("Publish" as const), topics: some, text: fc.string() }),
  fc.record({ _tag: fc.constant("Forget" as const), topic }),
  fc.record({ _tag: fc.constant("Hold" as const), owner: fc.constantFrom("a", "b") }),
  fc.record({ _tag: fc.constant("Progress" as const), text: fc.string({ minLength: 1 }) }),
  fc.record({ _tag: fc.constant("Release" as const) })
)
type Action = typeof action extends fc.Arbitrary<infer A> ? A : never

const play = (redis: Redis["Service"], run: string, action: Action) => {
  const key = (name: string) => redis.key(`{${run}}:${name}`)
  const keysOf = (topics: ReadonlyArray<string>) => topics.flatMap((name) => [key(name), key(`${name}:batches`)])
  const answer = (): Effect.Effect<unknown, unknown> => {
    switch (action._tag) {
      case "Renew":
        return redis.run(LiveScripts.renew, keysOf(action.topics), [action.first, 60_000])
      case "Publish":
        return redis.run(LiveScripts.publish, keysOf(action.topics), [
          4_000,
          60_000,
          ...action.topics.map(() => action.text)
        ])
      case "Forget":
        return redis.command("DEL", key(action.topic))
      case "Hold":
        return redis.run(LiveScripts.hold, [key("lease"), key("progress")], [action.owner, 60_000, 90_000])
      case "Progress":
        return redis.command("SET", key("progress"), action.text)
      case "Release":
        return redis.command("DEL", key("lease"))
    }
  }
  return Effect.gen(function* () {
    const reply = yield* answer()
    const kept = yield* Effect.forEach(["requests", "tasks"], (name) =>
      redis.command("XRANGE", key(`${name}:batches`), "-", "+")
    )
    return { reply, kept }
  })
}
