import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import fc from "fast-check"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { type Claim, StageDedup } from "../../../src/messaging/consume/StageDedup.ts"
import { Redis } from "../../../src/services/Redis.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"

const work: Claim = { stage: "write", taskId: "t1", signature: "s1", messageId: "m1", redelivered: false }

const overRedis = <E, R>(redis: Layer.Layer<Redis, E, R>) => Layer.provideMerge(StageDedup.layerRedis, redis)

const suite = <E>(name: string, layer: Layer.Layer<StageDedup, E>) =>
  describe(`StageDedup: ${name}`, () => {
    it.live("gives a piece of work to one message at a time", () =>
      Effect.gen(function* () {
        const { claim, release } = yield* StageDedup
        const messages = Array.from({ length: 20 }, (_, n) => ({ ...work, messageId: `m${n}` }))
        const won = yield* Effect.forEach(messages, claim, { concurrency: "unbounded" })
        assert.strictEqual(won.filter((isClaimed) => isClaimed).length, 1)
        const holder = messages[won.indexOf(true)] ?? work
        for (const other of messages.filter((message) => message !== holder)) yield* release(other)
        assert.isFalse(yield* claim({ ...work, messageId: "m20" }))
        yield* release(holder)
        assert.isTrue(yield* claim({ ...work, messageId: "m20" }))
      }).pipe(Effect.provide(layer))
    )

    it.live("keeps stages, tasks and signatures apart", () =>
      Effect.gen(function* () {
        const { claim } = yield* StageDedup
        for (const other of [{}, { stage: "plan" }, { taskId: "t2" }, { signature: "s2" }]) {
          assert.isTrue(yield* claim({ ...work, ...other }))
        }
      }).pipe(Effect.provide(layer))
    )

    it.live("gives it again to the message that holds it, once that is redelivered, and not to a copy of it", () =>
      Effect.gen(function* () {
        const { claim } = yield* StageDedup
        assert.isTrue(yield* claim(work))
        assert.isFalse(yield* claim(work))
        assert.isTrue(yield* claim({ ...work, redelivered: true }))
        assert.isFalse(yield* claim({ ...work, messageId: "m2", redelivered: true }))
      }).pipe(Effect.provide(layer))
    )

    it.live("answers as the one in memory does, whatever is asked", () =>
      Effect.gen(function* () {
        for (const [run, program] of fc.sample(programs, 60).entries()) {
          const model = Context.get(yield* Layer.build(Layer.fresh(StageDedup.layerMemory)), StageDedup)
          const real = yield* StageDedup
          for (const [index, { claim, releases }] of program.entries()) {
            const asked = { ...claim, taskId: `${claim.taskId} of ${run}` }
            if (releases) {
              yield* model.release(asked)
              yield* real.release(asked)
            } else {
              assert.strictEqual(yield* real.claim(asked), yield* model.claim(asked), `${index} of run ${run}`)
            }
          }
        }
      }).pipe(Effect.scoped, Effect.provide(layer))
    )
  })

const oneOf = <A>(...values: ReadonlyArray<A>) => fc.constantFrom(...values)

const programs = fc.array(
  fc.record({
    releases: fc.boolean(),
    claim: fc.record({
      stage: oneOf("plan", "write"),
      taskId: oneOf("t1", "t2"),
      signature: fc.constant("s"),
      messageId: oneOf("m1", "m2"),
      redelivered: fc.boolean()
    })
  }),
  { maxLength: 30 }
)

suite("memory", StageDedup.layerMemory)
suite("Redis in memory", overRedis(RedisMemory.layer()))

describe.skipIf(TemporaryPrefix.server === null)("with a Redis", () => {
  suite("Redis", overRedis(TemporaryPrefix.layer))

  it.live("keeps a claim for a day at most, under the names of the reference", () =>
    Effect.gen(function* () {
      const { claim } = yield* StageDedup
      const { command, key } = yield* Redis
      yield* claim(work)
      const name = key("workflow:contract:write:dedup:t1:s1")
      assert.strictEqual(yield* command("GET", name), "m1")
      const ttl = Number(yield* command("TTL", name))
      assert.isTrue(ttl > 86_300 && ttl <= 86_400, `TTL is ${ttl}`)
    }).pipe(Effect.provide(overRedis(TemporaryPrefix.layer)))
  )
})
