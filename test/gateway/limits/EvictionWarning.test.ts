import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer, Logger } from "effect"
import * as RedisIoredis from "../../../layers/RedisIoredis.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as EvictionWarning from "../../../src/gateway/limits/EvictionWarning.ts"
import type { Redis } from "../../../src/services/Redis.ts"
import * as RedisProcess from "../../RedisProcess.ts"

/** What is logged about this Redis. */
const said = Effect.fnUntraced(function* <E>(redis: Layer.Layer<Redis, E>) {
  const lines: Array<string> = []
  const logged = Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))])
  yield* Effect.ignore(EvictionWarning.warn).pipe(Effect.provide([redis, logged]))
  return lines
})

describe.skipIf(!RedisProcess.available)("EvictionWarning", () => {
  it.live.each([
    [["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"], true],
    [["--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"], true],
    [["--maxmemory", "100mb", "--maxmemory-policy", "noeviction"], false],
    [["--maxmemory-policy", "allkeys-lru"], false]
  ] as const)("of a Redis with %j: %s", ([options, warns]) =>
    Effect.gen(function* () {
      const { url } = yield* RedisProcess.make(...options)
      const lines = yield* said(RedisIoredis.layer({ url, prefix: "svc-test:" }))
      assert.lengthOf(lines, warns ? 1 : 0)
      if (warns) assert.include(lines[0], `(maxmemory-policy ${options.at(-1)})`)
    })
  )
})

it.effect("EvictionWarning of the in-memory Redis, which evicts nothing: none", () =>
  Effect.map(said(RedisMemory.layer({ prefix: "svc-test:" })), (lines) => assert.deepStrictEqual(lines, []))
)
