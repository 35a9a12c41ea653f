import { afterAll, assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { InstalledVersion } from "../../layers/drivers/InstalledDriver.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { take } from "../../layers/testing/contract/TokenBucket.ts"
import { Contract, RedisContract } from "../../layers/testing/index.ts"
import { Redis, type Reply } from "../../src/services/Redis.ts"
import * as TemporaryData from "../TemporaryData.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"
import { families, type RandomCommand, sequence } from "./RedisCommands.ts"

const memory = RedisMemory.layer({ prefix: "svc-test-memory:" })

const suite = <E>(name: string, layer: Layer.Layer<Redis, E>) =>
  Contract.register(RedisContract.suite, { name, layer }, { afterAll, describe, it })

suite("memory", memory)

suite(
  "memory on disk",
  RedisMemory.layerOnDisk({ prefix: "svc-test-memory:", rewriteBytes: 10_000 }).pipe(Layer.provide(TemporaryData.layer))
)

describe("Redis: memory on the test clock", () => {
  it.effect("expires exactly when told, lists what is left, and can be told otherwise", () =>
    Effect.gen(function* () {
      const { command } = yield* Redis
      yield* command("SET", "a", 1, "PX", 1_500)
      yield* command("SET", "b", 1, "EX", 10)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([yield* command("PTTL", "a"), yield* command("TTL", "b")], [500, 9])
      yield* command("SET", "b", 2, "KEEPTTL")
      yield* command("PEXPIRE", "a", 2_000)
      yield* TestClock.adjust("1999 millis")
      assert.strictEqual(yield* command("GET", "a"), "1")
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual([yield* command("GET", "a"), yield* command("TTL", "a")], [null, -2])
      yield* command("SET", "b", 3)
      assert.strictEqual(yield* command("TTL", "b"), -1)
    }).pipe(Effect.provide(Layer.fresh(memory)))
  )

  it.effect("tells its own time, and dates stream entries by it even when it goes back", () =>
    Effect.gen(function* () {
      const { command } = yield* Redis
      yield* TestClock.setTime(1_763_640_000_123)
      assert.deepStrictEqual(yield* command("TIME"), ["1763640000", "123000"])
      assert.strictEqual(yield* command("XADD", "s", "*", "a", 1), "1763640000123-0")
      yield* TestClock.setTime(1_763_640_000_000)
      assert.strictEqual(yield* command("XADD", "s", "*", "a", 1), "1763640000123-1")
    }).pipe(Effect.provide(Layer.fresh(memory)))
  )
})

describe.skipIf(TemporaryPrefix.server === null)("against a server", () => {
  suite("ioredis", TemporaryPrefix.layer)
  suite(
    "an unknown version of ioredis",
    TemporaryPrefix.layer.pipe(Layer.provide(Layer.succeed(InstalledVersion, () => "0.1.0")))
  )

  for (const [family, commands] of Object.entries(families)) {
    it.live(`answers like the server: ${family}`, () =>
      Effect.gen(function* () {
        const both = yield* Both
        yield* holds(
          fc.asyncProperty(sequence(commands), (sequence) => both((redis) => Effect.forEach(sequence, answer(redis))))
        )
      }).pipe(Effect.scoped)
    )
  }

  it.live("answers like the server: commands of all families on the same keys", () =>
    Effect.gen(function* () {
      const both = yield* Both
      const any = sequence(Object.values(families).flat())
      yield* holds(fc.asyncProperty(any, (sequence) => both((redis) => Effect.forEach(sequence, answer(redis)))))
    }).pipe(Effect.scoped)
  )

  it.live("runs a script like the server", () =>
    Effect.gen(function* () {
      const both = yield* Both
      const calls = fc.array(fc.tuple(fc.nat(20), fc.nat(8)), { minLength: 1, maxLength: 12 })
      yield* holds(
        fc.asyncProperty(calls, (calls) =>
          both(({ key, run }) =>
            Effect.forEach(calls, ([full, wanted]) => run(take, [key("k1"), key("k2")], [full, wanted]))
          )
        )
      )
    }).pipe(Effect.scoped)
  )
})

/** Runs the same on a server and in memory, each time on fresh keys, and compares what both say. */
const Both = Effect.gen(function* () {
  const real = Context.get(yield* Layer.build(TemporaryPrefix.layer), Redis)
  const imitation = Context.get(yield* Layer.build(memory), Redis)
  const promise = Effect.runPromiseWith(yield* Effect.context<never>())
  let round = 0
  return async <A>(work: (redis: Redis["Service"]) => Effect.Effect<A, unknown>) => {
    const suffix = `:${round++}`
    const fresh = (redis: Redis["Service"]) => ({ ...redis, key: (name: string) => redis.key(name + suffix) })
    const [expected, actual] = await promise(Effect.all([work(fresh(real)), work(fresh(imitation))]))
    assert.deepStrictEqual(actual, expected)
  }
})

const holds = <A>(property: fc.IAsyncProperty<A>) => Effect.promise(() => fc.assert(property, { numRuns: 150 }))

const unordered = new Set(["SMEMBERS", "HGETALL", "HKEYS", "HVALS"])
const lifetimes = new Set(["TTL", "PTTL"])

const answer =
  ({ command, key }: Redis["Service"]) =>
  ({ name, keys, rest }: RandomCommand) =>
    command(name, ...keys.map(key), ...rest).pipe(
      Effect.map((reply) => [name, comparable(name, reply)] as const),
      Effect.catch((error) => Effect.succeed([name, error.message] as const))
    )

/** Without what may differ: the order of a hash or a set, and how much of a lifetime has passed. */
const comparable = (name: string, reply: Reply): unknown => {
  if (unordered.has(name) && Array.isArray(reply)) return reply.map(String).sort()
  return lifetimes.has(name) && typeof reply === "number" && reply > 0 ? "alive" : reply
}
