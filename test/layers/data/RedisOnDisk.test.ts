import { cpSync, statSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as DataDirectory from "../../../layers/data/DataDirectory.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { Redis, type Script } from "../../../src/services/Redis.ts"
import { families, type RandomCommand, sequence } from "../../contract/RedisCommands.ts"
import * as TemporaryData from "../../TemporaryData.ts"

const open = (path: string, rewriteBytes?: number) =>
  Effect.map(
    Layer.build(Layer.fresh(RedisMemory.layerOnDisk({ rewriteBytes }).pipe(Layer.provide(DataDirectory.layer(path))))),
    Context.get(Redis)
  )

const inMemory = Effect.map(Layer.build(Layer.fresh(RedisMemory.layer())), Context.get(Redis))

const send =
  ({ command, key }: Redis["Service"]) =>
  ({ keys, name, rest }: RandomCommand) =>
    Effect.ignore(command(name, ...keys.map(key), ...rest))

const readers: Readonly<Record<string, ReadonlyArray<string>>> = {
  string: ["GET"],
  hash: ["HGETALL"],
  list: ["LRANGE", "0", "-1"],
  set: ["SMEMBERS"],
  zset: ["ZRANGEBYSCORE", "-inf", "+inf", "WITHSCORES"],
  stream: ["XRANGE", "-", "+"]
}

/** Everything that keys of these commands hold. */
const contents = ({ command }: Redis["Service"], commands: ReadonlyArray<RandomCommand>) =>
  Effect.forEach([...new Set(commands.flatMap(({ keys }) => keys))].sort(), (key) =>
    Effect.gen(function* () {
      const kind = String(yield* command("TYPE", key))
      const [reader, ...args] = readers[kind] ?? []
      return [
        key,
        kind,
        reader === undefined ? null : yield* command(reader, key, ...args),
        yield* command("PTTL", key)
      ]
    })
  )

const anyCommands = sequence(Object.values(families).flat())

const firstLog = join("redis", "00000001.log")

describe("Redis on disk", () => {
  it.effect("has everything that was confirmed, wherever after it the log was cut", () =>
    Effect.gen(function* () {
      const root = yield* TemporaryData.path
      const promise = Effect.runPromiseWith(yield* Effect.context<never>())
      let round = 0
      const check = (commands: ReadonlyArray<RandomCommand>, where: number) =>
        Effect.gen(function* () {
          const path = join(root, String(round++))
          const redis = yield* open(path)
          const ends: Array<number> = [0]
          for (const one of commands) {
            yield* send(redis)(one)
            yield* TestClock.adjust("3 millis")
            ends.push(statSync(join(path, firstLog)).size)
          }
          const cut = Math.round(where * (ends.at(-1) ?? 0))
          const confirmed = ends.findLastIndex((end) => end <= cut)
          cpSync(join(path, firstLog), join(`${path}-cut`, firstLog), { recursive: true })
          truncateSync(join(`${path}-cut`, firstLog), cut)
          cpSync(join(path, "version.json"), join(`${path}-cut`, "version.json"))
          const reopened = yield* open(`${path}-cut`)
          const expected = yield* inMemory
          yield* TestClock.setTime(0)
          for (const one of commands.slice(0, confirmed)) {
            yield* send(expected)(one)
            yield* TestClock.adjust("3 millis")
          }
          assert.deepStrictEqual(yield* contents(reopened, commands), yield* contents(expected, commands))
        }).pipe(Effect.scoped, Effect.provide(TestClock.layer()))
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(anyCommands, fc.double({ min: 0, max: 1, noNaN: true }), (commands, where) =>
            promise(check(commands, where))
          ),
          { numRuns: 60 }
        )
      )
    })
  )

  it.effect("has the same after its log was replaced by snapshots", () =>
    Effect.gen(function* () {
      const root = yield* TemporaryData.path
      const promise = Effect.runPromiseWith(yield* Effect.context<never>())
      let round = 0
      const check = (commands: ReadonlyArray<RandomCommand>) =>
        Effect.gen(function* () {
          const path = join(root, String(round++))
          const before = yield* Effect.scoped(
            Effect.gen(function* () {
              const redis = yield* open(path, 300)
              yield* Effect.forEach(commands, send(redis))
              return yield* contents(redis, commands)
            })
          )
          assert.deepStrictEqual(yield* contents(yield* open(path, 300), commands), before)
        }).pipe(Effect.scoped)
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(anyCommands, (commands) => promise(check(commands))),
          { numRuns: 60 }
        )
      )
    })
  )

  it.effect("keeps all commands of a script or none, and absolute expiries and generated ids", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const both: Script<string> = {
        name: "both",
        lua: "",
        step: (call, [first = "", second = ""]) => {
          call("SET", first, "1", "PX", 5_000)
          return call("XADD", second, "*", "field", "value")
        },
        decode: String
      }
      yield* TestClock.setTime(1_000)
      const id = yield* Effect.scoped(Effect.flatMap(open(path), ({ run }) => run(both, ["a", "b"], [])))
      assert.strictEqual(id, "1000-0")
      yield* TestClock.adjust("2 seconds")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { command } = yield* open(path)
          assert.strictEqual(yield* command("PTTL", "a"), 3_000)
          assert.deepStrictEqual(yield* command("XRANGE", "b", "-", "+"), [["1000-0", ["field", "value"]]])
        })
      )
      truncateSync(join(path, firstLog), statSync(join(path, firstLog)).size - 1)
      const { command } = yield* open(path)
      assert.strictEqual(yield* command("EXISTS", "a", "b"), 0)
    })
  )
})
