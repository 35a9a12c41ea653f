import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import type * as Digest from "../../src/live/Digest.ts"
import * as LeasedSource from "../../src/live/LeasedSource.ts"
import { LiveFeed } from "../../src/live/LiveFeed.ts"
import { Redis } from "../../src/services/Redis.ts"

describe("a source that several processes watch", () => {
  it.effect("is told by one of them, and by another one from there when that one has gone", () =>
    Effect.gen(function* () {
      const redis = Context.get(yield* Layer.build(RedisMemory.layer()), Redis)
      const told: Array<Digest.Detail> = []
      let number = 0
      const process = Effect.gen(function* () {
        const scope = yield* Scope.make()
        yield* LeasedSource.watch({
          topic: "queues",
          name: "svc",
          every: 1_000,
          advance: (progress) =>
            Effect.sync(() => ({
              progress: String(number),
              changes:
                progress === undefined || progress === String(number)
                  ? []
                  : [{ kind: "changed", detail: { from: progress, to: number } }]
            }))
        }).pipe(
          Effect.provideService(LiveFeed, followed(told)),
          Effect.provideService(Redis, redis),
          Scope.provide(scope)
        )
        return Scope.close(scope, Exit.void)
      })
      const endFirst = yield* process
      const endSecond = yield* process
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(told, [])
      number = 1
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(told, [{ from: "0", to: 1 }])
      yield* endFirst
      number = 2
      yield* TestClock.adjust("7 seconds")
      assert.deepStrictEqual(told.slice(1), [{ from: "1", to: 2 }])
      yield* endSecond
    })
  )
})

const followed = (told: Array<Digest.Detail>): typeof LiveFeed.Service => {
  const topic = { isFollowed: true, add: (_: string, describe: () => Digest.Detail) => void told.push(describe()) }
  return {
    requests: topic,
    limits: topic,
    configuration: topic,
    tasks: topic,
    dead_letters: topic,
    queues: topic,
    workers: topic
  }
}
