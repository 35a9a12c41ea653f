import { assert, describe, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as UsageWriter from "../../../src/gateway/usage/UsageWriter.ts"
import { Database } from "../../../src/services/Database.ts"
import { Redis } from "../../../src/services/Redis.ts"
import { usageQueue } from "../../../src/state/UsageQueue.ts"
import { eventually } from "../../Eventually.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"

/**
 * A writer in a scope, and how often it has read the queue. With `overtaken`, another process removes the oldest record
 * while the writer writes its first batch.
 */
const running = Effect.fnUntraced(function* (overtaken = false) {
  const redis = Context.get(yield* Layer.build(RedisMemory.layer({ prefix: "svc-test:" })), Redis)
  let reads = 0
  let isOvertaken = overtaken
  const counting = Layer.succeed(Redis, {
    ...redis,
    run: (script, keys, args) => {
      if (script.name === "oldest") reads++
      const work = redis.run(script, keys, args)
      if (script.name !== "take" || !isOvertaken) return work
      isOvertaken = false
      return Effect.andThen(redis.run(script, keys, [args[0] ?? "", 1]), work)
    }
  })
  const scope = yield* Scope.make()
  yield* Layer.buildWithScope(Layer.provide(UsageWriter.layer, counting), scope)
  const key = redis.key(usageQueue)
  return {
    add: (record: string) => redis.command("RPUSH", key, record),
    length: redis.command("LLEN", key),
    reads: Effect.sync(() => reads),
    close: Scope.close(scope, Exit.void)
  }
})

/** Another process that writes. */
const lock = Effect.gen(function* () {
  const { sql, transaction } = yield* Database
  const [held, released] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()]
  const work = sql`SELECT pg_advisory_xact_lock(7238411)`.pipe(
    Effect.andThen(Deferred.succeed(held, undefined)),
    Effect.andThen(Deferred.await(released))
  )
  const fiber = yield* Effect.forkChild(transaction(work))
  yield* Deferred.await(held)
  return Effect.andThen(Deferred.succeed(released, undefined), Fiber.join(fiber))
})

describe.skipIf(TemporaryDatabase.server === null)("the end of a process that writes usage records", () => {
  layer(MigratedDatabase.of(TemporaryDatabase.layer), { excludeTestServices: true })((it) => {
    it.effect("waits until another process has written, because that one may end, too", () =>
      Effect.gen(function* () {
        const { add, close, length, reads } = yield* running()
        const unlock = yield* lock
        // It is no record, so it is written as an error, and taken out of the queue.
        yield* add("what is no record")
        const closed = yield* Effect.forkChild(close)
        const before = yield* reads
        yield* eventually(reads, (now) => now >= before + 2)
        assert.strictEqual(yield* length, 1)
        yield* unlock
        yield* Fiber.join(closed)
        assert.strictEqual(yield* length, 0)
      })
    )

    it.effect("leaves nothing behind where another process has removed the older part of the last batch", () =>
      Effect.gen(function* () {
        const { add, close, length } = yield* running(true)
        yield* add("what is no record")
        yield* add("nor is this")
        yield* close
        assert.strictEqual(yield* length, 0)
      })
    )
  })
})
