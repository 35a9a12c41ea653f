import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Metric, SubscriptionRef } from "effect"
import { HttpRouter } from "effect/http"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import * as ControlApp from "../../src/control/ControlApp.ts"
import { Readiness } from "../../src/control/Readiness.ts"
import { Lifecycle } from "../../src/gateway/model/Lifecycle.ts"
import { Database } from "../../src/services/Database.ts"
import { Redis, RedisError } from "../../src/services/Redis.ts"
import { call, refusalOf, suite } from "./Listener.ts"

suite("Operations", (it) => {
  it.effect("health and readiness answer without a token", () =>
    Effect.gen(function* () {
      const health = yield* call("GET", "/admin-ui/healthz", { authorization: null })
      assert.deepStrictEqual([health.status, health.json], [200, { status: "ok" }])
      const readiness = yield* call("GET", "/admin-ui/readyz", { authorization: null })
      assert.deepStrictEqual([readiness.status, readiness.json], [200, { status: "ready" }])
    })
  )

  it.effect("a process that drains is not ready, and still healthy", () =>
    Effect.gen(function* () {
      const lifecycle = yield* Lifecycle
      yield* SubscriptionRef.set(lifecycle, "draining")
      const readiness = yield* call("GET", "/admin-ui/readyz", { authorization: null })
      yield* SubscriptionRef.set(lifecycle, "serving")
      assert.deepStrictEqual([readiness.status, readiness.json], [503, { status: "not_ready" }])
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

const probes = HttpRouter.serve(ControlApp.probes, {
  routerConfig: ControlApp.routerConfig,
  disableLogger: true,
  disableListenLog: true
}).pipe(
  Layer.provideMerge(NodeHttpServer.layerTest),
  Layer.provide(Readiness.layer),
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

/** As a gateway asks for it. */
const ready = Effect.flatMap(Readiness, (answer) => answer)

function doors(database: Database["Service"]["ping"], redis: Redis["Service"]["ping"]) {
  return Layer.mergeAll(
    Layer.mock(Database, { ping: database }),
    Layer.mock(Redis, { key: (name) => name, ping: redis }),
    Lifecycle.layer
  )
}

const gateway = (...pings: Parameters<typeof doors>) => Layer.provide(Readiness.layer, doors(...pings))

it.effect("a database or a Redis that refuses makes the process not ready", () =>
  Effect.gen(function* () {
    assert.isTrue(yield* Effect.provide(ready, gateway(Effect.void, Effect.void)))
    assert.isFalse(yield* Effect.provide(ready, gateway(Effect.fail(refused), Effect.void)))
    assert.isFalse(yield* Effect.provide(ready, gateway(Effect.void, Effect.fail(lost))))
  })
)

it.effect("one that does not answer counts as gone after a second, both together", () =>
  Effect.gen(function* () {
    const asked = yield* Deferred.make<void>()
    const silent = Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
    const answer = yield* Effect.forkChild(Effect.provide(ready, gateway(silent, Effect.never)))
    yield* Deferred.await(asked)
    yield* TestClock.adjust("1 second")
    assert.isFalse(yield* Fiber.join(answer))
  })
)
