import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Metric, SubscriptionRef } from "effect"
import { HttpRouter } from "effect/http"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import * as Probes from "../../src/control/http/Probes.ts"
import { Conditions } from "../../src/process/Conditions.ts"
import { Lifecycle, type Phase } from "../../src/process/Lifecycle.ts"
import { Readiness, type Report } from "../../src/process/Readiness.ts"
import { Database } from "../../src/services/Database.ts"
import { Redis, RedisError } from "../../src/services/Redis.ts"
import { call, refusalOf, suite } from "./Listener.ts"

suite("Operations", (it) => {
  it.effect("health and readiness answer without a token", () =>
    Effect.gen(function* () {
      const health = yield* call("GET", "/admin-ui/healthz", { authorization: null })
      assert.deepStrictEqual([health.status, health.json], [200, { status: "ok" }])
      const readiness = yield* call("GET", "/admin-ui/readyz", { authorization: null })
      const checks = { database: "up", redis: "up", listeners: "open" }
      assert.deepStrictEqual([readiness.status, readiness.json], [200, { status: "ready", checks }])
    })
  )

  it.effect("a process that drains is not ready, and still healthy", () =>
    Effect.gen(function* () {
      const lifecycle = yield* Lifecycle
      yield* SubscriptionRef.set(lifecycle, "draining")
      const readiness = yield* call("GET", "/admin-ui/readyz", { authorization: null })
      yield* SubscriptionRef.set(lifecycle, "serving")
      const checks = { database: "up", redis: "up", listeners: "closing" }
      assert.deepStrictEqual([readiness.status, readiness.json], [503, { status: "not_ready", checks }])
      assert.strictEqual((yield* call("GET", "/admin-ui/healthz")).status, 200)
    })
  )

  it.effect("HEAD is answered as GET is, without the body", () =>
    Effect.gen(function* () {
      for (const path of ["healthz", "readyz", "metrics", "openapi.json"]) {
        const { headers, status, text } = yield* call("HEAD", `/admin-ui/${path}`, { authorization: null })
        const got = yield* call("GET", `/admin-ui/${path}`, { authorization: null })
        assert.deepStrictEqual([status, text], [200, ""], path)
        assert.strictEqual(headers["content-type"], got.headers["content-type"], path)
      }
      assert.strictEqual((yield* call("HEAD", "/admin-ui/admin/projects")).status, 200)
      assert.strictEqual((yield* call("HEAD", "/admin-ui/admin/projects", { authorization: null })).status, 401)
      assert.strictEqual((yield* call("HEAD", "/admin-ui/admin/policy/simulate")).status, 405)
      for (const path of ["/admin-ui/nothing", "/admin-ui/admin/nothing"]) {
        assert.strictEqual((yield* call("HEAD", path)).status, 404, path)
      }
      assert.strictEqual((yield* call("HEAD", "/admin-ui/admin/nothing", { authorization: null })).status, 401)
    })
  )

  it.effect("metrics are Prometheus text", () =>
    Effect.gen(function* () {
      yield* Metric.update(Metric.gauge("svc_test_gauge"), 3)
      const { headers, text } = yield* call("GET", "/admin-ui/metrics", { authorization: null })
      assert.strictEqual(headers["content-type"], "text/plain; version=0.0.4")
      assert.match(text, /^svc_test_gauge 3$/m)
    })
  )
})

const probes = HttpRouter.serve(Probes.layer, {
  routerConfig: Probes.routerConfig,
  disableLogger: true,
  disableListenLog: true
}).pipe(
  Layer.provideMerge(NodeHttpServer.layerTest),
  Layer.provide(Readiness.layer("degraded")),
  Layer.provide(doors(Effect.void, Effect.void))
)

it.live("a process without the operator API answers probes, and knows nothing else", () =>
  Effect.gen(function* () {
    for (const path of ["healthz", "readyz", "metrics"]) {
      const { headers, status } = yield* call("GET", `/admin-ui/${path}`)
      assert.strictEqual(status, 200, path)
      assert.isString(headers["x-request-id"])
      const head = yield* call("HEAD", `/admin-ui/${path}`)
      assert.deepStrictEqual([head.status, head.text], [200, ""], path)
    }
    for (const path of ["/admin-ui/admin/projects", "/admin-ui/openapi.json", "/"]) {
      assert.deepStrictEqual(refusalOf(yield* call("GET", path)), { status: 404, code: "not_found", param: null }, path)
    }
  }).pipe(Effect.provide(probes))
)

const refused = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("refused") }) })
const lost = new RedisError({ operation: "command", retryable: true, cause: new Error("lost") })

/** Probes are told the status and the checks. Operators see the dependencies, too. */
const ready = Effect.map(
  Effect.flatMap(Readiness, (answer) => answer),
  ({ checks, status }) => ({ checks, status })
)

function doors(database: Database["Service"]["ping"], redis: Redis["Service"]["ping"], phase: Phase = "serving") {
  return Layer.mergeAll(
    Layer.mock(Database, { ping: database }),
    Layer.mock(Redis, { key: (name) => name, ping: redis }),
    Lifecycle.layer(phase)
  )
}

const gateway = (...pings: Parameters<typeof doors>) => Layer.provide(Readiness.layer("degraded"), doors(...pings))
const control = (...pings: Parameters<typeof doors>) => Layer.provide(Readiness.layer("not_ready"), doors(...pings))

it.effect("without its database a gateway is degraded, because it serves, and the operator API is not ready", () =>
  Effect.gen(function* () {
    const checks = { database: "down", redis: "up", listeners: "open" }
    const gone = [Effect.fail(refused), Effect.void] as const
    assert.deepStrictEqual(yield* Effect.provide(ready, gateway(...gone)), { status: "degraded", checks })
    assert.deepStrictEqual(yield* Effect.provide(ready, control(...gone)), { status: "not_ready", checks })
  })
)

it.effect("a Redis that refuses makes either not ready, and the body names it", () =>
  Effect.gen(function* () {
    const report: Report = { status: "not_ready", checks: { database: "up", redis: "down", listeners: "open" } }
    for (const process of [gateway, control]) {
      assert.deepStrictEqual(yield* Effect.provide(ready, process(Effect.void, Effect.fail(lost))), report)
    }
  })
)

it.effect("a process with a listener still to open is not ready", () =>
  Effect.gen(function* () {
    const report = yield* Effect.provide(ready, gateway(Effect.void, Effect.void, "starting"))
    assert.deepStrictEqual([report.status, report.checks["listeners"]], ["not_ready", "opening"])
  })
)

it.effect("what a part of the process says about itself degrades it, and is named", () =>
  Effect.gen(function* () {
    const conditions = yield* Conditions
    let is = "current"
    conditions.register(() => ({ name: "configuration", status: is, ok: is === "current" }))
    const ask = Effect.provide(
      ready,
      Layer.provide(gateway(Effect.void, Effect.void), Layer.succeed(Conditions, conditions))
    )
    assert.strictEqual((yield* ask).status, "ready")
    is = "unreadable_rows"
    const { checks, status } = yield* ask
    assert.deepStrictEqual([status, checks["configuration"]], ["degraded", "unreadable_rows"])
  }).pipe(Effect.provide(Conditions.layer))
)

it.effect("one that does not answer counts as gone after a second, both together", () =>
  Effect.gen(function* () {
    const asked = yield* Deferred.make<void>()
    const silent = Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
    const answer = yield* Effect.forkChild(Effect.provide(ready, gateway(silent, Effect.never)))
    yield* Deferred.await(asked)
    yield* TestClock.adjust("1 second")
    const { checks } = yield* Fiber.join(answer)
    assert.deepStrictEqual([checks["database"], checks["redis"]], ["down", "down"])
  })
)

it.effect("one that falls silent holds up no probe: it is what it was for a second, and then gone", () =>
  Effect.gen(function* () {
    let ping: Effect.Effect<void> = Effect.void
    const database = Effect.suspend(() => ping)
    yield* Effect.gen(function* () {
      const probed = Effect.gen(function* () {
        const answer = yield* Effect.forkChild(yield* Readiness)
        yield* TestClock.adjust("250 millis")
        const { checks, status } = yield* Fiber.join(answer)
        return [status, checks["database"]]
      })
      assert.deepStrictEqual(yield* probed, ["ready", "up"])
      ping = Effect.never
      assert.deepStrictEqual(yield* probed, ["ready", "up"])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* probed, ["degraded", "down"])
      assert.deepStrictEqual(yield* probed, ["degraded", "down"])
      ping = Effect.void
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* probed, ["ready", "up"])
    }).pipe(Effect.provide(gateway(database, Effect.void)))
  })
)
