import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Schedule } from "effect"
import { eventually } from "../Eventually.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as TcpProxy from "../TcpProxy.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import { type Answer, chat, codeOf, message } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

/**
 * How long PostgreSQL refuses at least, and then again how long it hangs. By default either lasts for a hundred
 * requests, which keeps the suite short; the minute that the requirements speak of, twice, is
 *
 * ```sh
 * SVC_TEST_OUTAGE_SECONDS=60 npm test -- test/e2e/DatabaseGone.test.ts
 * ```
 */
const outageSeconds = Number(process.env["SVC_TEST_OUTAGE_SECONDS"] ?? 0)

const timeout = 120_000 + 3_000 * outageSeconds

/** Until stopped, fifty requests a second; tells how many there were, and what came of them. */
const load = Effect.fnUntraced(function* (ask: Effect.Effect<Answer>) {
  let asked = 0
  const statuses: Array<number> = []
  const one = Effect.suspend(() => {
    asked += 1
    return Effect.map(ask, ({ status }) => void statuses.push(status))
  })
  const asking = yield* Effect.forkScoped(
    Effect.repeat(Effect.forkChild(Effect.uninterruptible(one)), Schedule.fixed("20 millis"))
  )
  const answered = Effect.sync(() => statuses.length)
  /** So many more have been answered. */
  const more = (count: number) =>
    Effect.flatMap(answered, (before) => eventually(answered, (now) => now >= before + count))
  return {
    more,
    throughOutage: Effect.andThen(Effect.sleep(`${outageSeconds} seconds`), more(100)),
    stop: Effect.andThen(
      Fiber.interrupt(asking),
      Effect.sync(() => ({ asked, statuses }))
    )
  }
})

const readiness = (gateway: RunningGateway.RunningGateway) =>
  Effect.promise(() => fetch(`${gateway.control}/admin-ui/readyz`).then(({ status }) => status))

describe.skipIf(!Deployment.available)("PostgreSQL gone, under load", { timeout }, () => {
  it.live("requests with known keys go on while it refuses and while it hangs, and no record is missing after", () =>
    Effect.gen(function* () {
      const upstream = yield* SimulatorServer.serve({ recorded: 20_000 + 200 * outageSeconds })
      const proxies: Array<TcpProxy.TcpProxy> = []
      const deployment = yield* Deployment.make({
        databaseFor: (url) =>
          Effect.gen(function* () {
            const to = new URL(Redacted.value(url))
            const proxy = yield* TcpProxy.make({ host: to.hostname, port: Number(to.port || 5432) })
            proxies.push(proxy)
            to.hostname = "127.0.0.1"
            to.port = String(proxy.port)
            return to.href
          }),
        environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "k", LOG_LEVEL: "warn" }
      })
      const [postgres] = proxies
      if (postgres === undefined) return assert.fail("the database is not behind a proxy")
      const gateway = yield* deployment.start()
      const key = yield* Effect.promise(() =>
        RunningGateway.createKey(gateway, { policy: { daily_budget_usd: 100_000, rpm_limit: 100_000 } })
      )
      const late = yield* Effect.promise(() => RunningGateway.createKey(gateway))

      const running = yield* load(chat(gateway, key.raw))
      yield* running.more(20)

      yield* postgres.cut
      yield* eventually(readiness(gateway), (status) => status === 503)
      yield* running.throughOutage
      const unknown = yield* message(gateway, late.raw)
      assert.deepStrictEqual([unknown.status, codeOf(unknown)], [503, "control_state_unavailable"])
      assert.include(unknown.text, `"type":"overloaded_error"`)
      yield* postgres.restore
      yield* eventually(readiness(gateway), (status) => status === 200)

      yield* postgres.freeze
      yield* running.throughOutage
      yield* postgres.thaw
      yield* eventually(readiness(gateway), (status) => status === 200)
      yield* running.more(20)

      const { asked, statuses } = yield* running.stop
      assert.deepStrictEqual([...new Set(statuses)], [200])
      assert.strictEqual(statuses.length, asked)
      const records = yield* deployment.recorded(key.id, statuses.length)
      assert.strictEqual(new Set(records.map(({ id }) => id)).size, records.length)
      assert.strictEqual(records.length, upstream.requests.length)

      // what was changed after all of it is heard again
      assert.strictEqual((yield* chat(gateway, late.raw)).status, 200)
      yield* Effect.promise(() => gateway.operate("POST", `/keys/${late.id}/revoke`))
      yield* eventually(chat(gateway, late.raw), ({ status }) => status === 401)
    })
  )
})
