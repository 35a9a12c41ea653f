import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { eventually } from "../Eventually.ts"
import * as RedisProcess from "../RedisProcess.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import { chat, codeOf, message } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

const setting = Effect.fnUntraced(function* (...redisOptions: ReadonlyArray<string>) {
  const redis = yield* Effect.orDie(RedisProcess.make(...redisOptions))
  const upstream = yield* SimulatorServer.serve({ paceMs: 50 })
  const deployment = yield* Deployment.make({
    redis: redis.url,
    environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "k" }
  })
  const gateway = yield* deployment.start()
  const limited = yield* Effect.promise(() => RunningGateway.createKey(gateway, { policy: { daily_budget_usd: 0.1 } }))
  const unlimited = yield* Effect.promise(() => RunningGateway.createKey(gateway))
  return { deployment, gateway, limited, redis, unlimited, upstream }
})

describe.skipIf(!Deployment.available || !RedisProcess.available)("Redis gone in flight", () => {
  it.live("limited keys are refused in their shape, unlimited ones served, and all is recorded when it is back", () =>
    Effect.gen(function* () {
      const { deployment, gateway, limited, redis, unlimited } = yield* setting()
      assert.strictEqual((yield* chat(gateway, limited.raw)).status, 200)
      yield* deployment.recorded(limited.id, 1)

      yield* redis.kill
      const a = yield* chat(gateway, limited.raw)
      const b = yield* message(gateway, limited.raw)
      for (const answer of [a, b]) {
        assert.deepStrictEqual([answer.status, codeOf(answer)], [503, "control_state_unavailable"])
        assert.strictEqual(answer.headers.get("retry-after"), "1")
      }
      assert.include(b.text, `"type":"overloaded_error"`)
      const served = yield* Effect.all(
        Array.from({ length: 10 }, (_, i) => chat(gateway, unlimited.raw, { stream: i % 2 === 0 })),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual([...new Set(served.map(({ status }) => status))], [200])

      yield* redis.start
      yield* eventually(chat(gateway, limited.raw), ({ status }) => status === 200)
      const records = yield* deployment.recorded(unlimited.id, 10)
      assert.strictEqual(records.length, 10)
      const refused = yield* deployment.recorded(limited.id, 4)
      assert.isAtLeast(refused.filter(({ error_code }) => error_code === "control_state_unavailable").length, 2)
    })
  )

  it.live("a Redis that is full is one that is gone: what it did not take is recorded when it has room again", () =>
    Effect.gen(function* () {
      const { deployment, gateway, limited, redis, unlimited } = yield* setting()
      const memory = (bytes: string) => RedisProcess.ask(redis.url, "CONFIG", "SET", "maxmemory", bytes)
      assert.strictEqual((yield* chat(gateway, limited.raw)).status, 200)
      const streamed = yield* Effect.forkChild(chat(gateway, limited.raw, { stream: true }))
      yield* eventually(deployment.redis("ZCARD", deployment.key(`limits:open:${limited.id}`)), (open) => open === 1)
      yield* memory("1")
      const refused = yield* chat(gateway, limited.raw)
      assert.deepStrictEqual([refused.status, codeOf(refused)], [503, "control_state_unavailable"])
      assert.strictEqual((yield* chat(gateway, unlimited.raw)).status, 200)
      assert.include((yield* Fiber.join(streamed)).text, "[DONE]")
      yield* memory("0")
      assert.lengthOf(yield* deployment.recorded(unlimited.id, 1), 1)
      assert.lengthOf(yield* deployment.recorded(limited.id, 3), 3)
      assert.strictEqual(yield* deployment.redis("ZCARD", deployment.key(`limits:open:${limited.id}`)), 0)
      assert.notMatch(gateway.output(), /records? (is|are) lost/)
    })
  )

  it.live("what a frozen Redis reserves when it thaws, for requests refused meanwhile, is given back at once", () =>
    Effect.gen(function* () {
      const { deployment, gateway, limited, redis } = yield* setting()
      const open = deployment.redis("ZCARD", deployment.key(`limits:open:${limited.id}`))
      assert.strictEqual((yield* chat(gateway, limited.raw)).status, 200)
      yield* redis.freeze
      const refused = yield* Effect.all([chat(gateway, limited.raw), chat(gateway, limited.raw)], { concurrency: 2 })
      assert.deepStrictEqual(refused.map(codeOf), ["control_state_unavailable", "control_state_unavailable"])
      yield* redis.thaw
      assert.lengthOf(yield* deployment.recorded(limited.id, 3), 3)
      assert.strictEqual(yield* open, 0)
      // the one that was served cost a tenth of the budget
      for (let i = 0; i < 9; i++) assert.strictEqual((yield* chat(gateway, limited.raw)).status, 200)
      assert.strictEqual((yield* chat(gateway, limited.raw)).status, 402)
    })
  )

  it.live("a request that was admitted before and answered after is recorded once, and spent once", () =>
    Effect.gen(function* () {
      const { deployment, gateway, limited, redis, upstream } = yield* setting()
      const asked = yield* Effect.forkChild(chat(gateway, limited.raw, { stream: true }))
      yield* eventually(
        Effect.sync(() => upstream.requests.length),
        (count) => count === 1
      )
      yield* redis.kill
      yield* redis.start
      const answer = yield* Fiber.join(asked)
      assert.include(answer.text, "[DONE]")
      const [record, ...others] = yield* deployment.recorded(limited.id, 1)
      assert.deepStrictEqual(others, [])
      assert.deepInclude(record, { status_code: 200, usage_source: "reported", cost_nanos: 10_000_000 })
    })
  )

  it.live("a Redis that lost its memory does not give a budget anew: the spend is on record", () =>
    Effect.gen(function* () {
      const { deployment, gateway, limited, redis } = yield* setting()
      for (let i = 0; i < 6; i++) assert.strictEqual((yield* chat(gateway, limited.raw)).status, 200)
      yield* deployment.recorded(limited.id, 6)
      yield* redis.kill
      yield* redis.start
      yield* eventually(chat(gateway, limited.raw), ({ status }) => status !== 503)
      const rest = yield* Effect.all(
        Array.from({ length: 20 }, () => chat(gateway, limited.raw)),
        {
          concurrency: "unbounded"
        }
      )
      assert.strictEqual(rest.filter(({ status }) => status === 200).length, 3)
      assert.strictEqual(rest.filter((answer) => codeOf(answer) === "budget_exceeded").length, 17)
    })
  )

  it.live("records that wait for Redis when the process is asked to end are settled if it comes back in time", () =>
    Effect.gen(function* () {
      const { deployment, gateway, redis, unlimited } = yield* setting()
      yield* redis.kill
      for (let i = 0; i < 3; i++) assert.strictEqual((yield* chat(gateway, unlimited.raw)).status, 200)
      gateway.signal("SIGTERM")
      yield* eventually(Effect.sync(gateway.output), (output) => output.includes("draining"))
      yield* redis.start
      assert.strictEqual(yield* Effect.promise(() => gateway.exited), 0)
      yield* deployment.start()
      assert.strictEqual((yield* deployment.recorded(unlimited.id, 3)).length, 3)
    })
  )
})
