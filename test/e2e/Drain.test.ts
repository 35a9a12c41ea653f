import { connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { eventually } from "../Eventually.ts"
import * as RawConnection from "../RawConnection.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { hello } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"
import * as GatedUpstream from "./GatedUpstream.ts"

const setting = Effect.fnUntraced(function* (drainSeconds: number, delaySeconds?: number) {
  const upstream = yield* GatedUpstream.make
  const deployment = yield* Deployment.make({
    environment: {
      UPSTREAM_BASE_URL: upstream.origin,
      UPSTREAM_SERVICE_KEY: "k",
      GATEWAY_DRAIN_SECONDS: String(drainSeconds),
      ...(delaySeconds === undefined ? {} : { GATEWAY_DRAIN_DELAY_SECONDS: String(delaySeconds) })
    }
  })
  const gateway = yield* deployment.start()
  const key = yield* Effect.promise(() => RunningGateway.createKey(gateway, { policy: { daily_budget_usd: 1 } }))
  return { deployment, gateway, key, upstream }
})

/** A stream of which the first half has come. */
const streaming = Effect.fnUntraced(function* (gateway: RunningGateway.RunningGateway, key: string) {
  const connection = yield* RawConnection.open(gateway.proxy)
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const body = JSON.stringify({ model: "m", messages: hello, stream: true })
  connection.write(RawConnection.request("POST /v1/chat/completions", headers, body))
  yield* connection.until(/"two"/)
  return connection
})

const refusesConnections = (origin: string) =>
  Effect.promise(
    () =>
      new Promise<boolean>((settle) => {
        const { hostname, port } = new URL(origin)
        const socket = connect(Number(port), hostname, () => settle(false))
        socket.on("error", () => settle(true))
        socket.on("connect", () => socket.destroy())
      })
  )

const probe = (gateway: RunningGateway.RunningGateway, name: string) =>
  Effect.promise(() => fetch(`${gateway.control}/admin-ui/${name}`).then(({ status }) => status))

const exitOf = ({ exited }: RunningGateway.RunningGateway) => Effect.promise(() => exited)

describe.skipIf(!Deployment.available)("a gateway that is asked to end", () => {
  it.live.each(["SIGTERM", "SIGINT"] as const)(
    "%s: takes nothing new, says so, lets its streams end whole, records them, and exits with 0",
    (signal) =>
      Effect.gen(function* () {
        const { deployment, gateway, key, upstream } = yield* setting(30)
        const streams = yield* Effect.all(
          Array.from({ length: 5 }, () => streaming(gateway, key.raw)),
          { concurrency: 5 }
        )
        gateway.signal(signal)
        yield* eventually(refusesConnections(gateway.proxy), (refused) => refused)
        assert.strictEqual(yield* probe(gateway, "readyz"), 503)
        assert.strictEqual(yield* probe(gateway, "healthz"), 200)
        yield* upstream.open
        for (const stream of streams) {
          const { body, whole } = RawConnection.answerOf(yield* stream.until(/\r\n0\r\n\r\n$/))
          assert.isTrue(whole)
          assert.strictEqual(body.toString(), GatedUpstream.beginning + GatedUpstream.ending)
        }
        assert.strictEqual(yield* exitOf(gateway), 0)
        const records = yield* deployment.recorded(key.id, streams.length)
        assert.strictEqual(records.length, streams.length)
        for (const record of records) {
          assert.deepInclude(record, { status_code: 200, usage_source: "reported", total_tokens: 7, streamed: true })
        }
      })
  )

  it.live(
    "with GATEWAY_DRAIN_DELAY_SECONDS it is not ready at once, serves who still comes meanwhile, and then drains",
    () =>
      Effect.gen(function* () {
        const { gateway, key, upstream } = yield* setting(30, 3)
        gateway.signal("SIGTERM")
        const [took] = yield* Effect.timed(
          Effect.gen(function* () {
            yield* eventually(probe(gateway, "readyz"), (status) => status === 503)
            const late = yield* streaming(gateway, key.raw)
            yield* eventually(refusesConnections(gateway.proxy), (refused) => refused)
            yield* upstream.open
            const { body, whole } = RawConnection.answerOf(yield* late.until(/\r\n0\r\n\r\n$/))
            assert.isTrue(whole)
            assert.strictEqual(body.toString(), GatedUpstream.beginning + GatedUpstream.ending)
            assert.strictEqual(yield* exitOf(gateway), 0)
          })
        )
        assert.isAtLeast(Duration.toSeconds(took), 2.9)
      })
  )

  it.live("a stream that outlasts GATEWAY_DRAIN_SECONDS is cut, visibly, and recorded as estimated; exit 0", () =>
    Effect.gen(function* () {
      const { deployment, gateway, key } = yield* setting(1)
      const stream = yield* streaming(gateway, key.raw)
      const [took, code] = yield* Effect.timed(
        Effect.suspend(() => {
          gateway.signal("SIGTERM")
          return exitOf(gateway)
        })
      )
      assert.strictEqual(code, 0)
      assert.isBelow(Duration.toSeconds(took), 30)
      const { body, whole } = RawConnection.answerOf(yield* stream.closed)
      assert.isFalse(whole)
      assert.strictEqual(body.toString(), GatedUpstream.beginning)
      const [record, ...others] = yield* deployment.recorded(key.id, 1)
      assert.deepStrictEqual(others, [])
      assert.deepInclude(record, { status_code: 200, usage_source: "estimated" })
      assert.strictEqual(yield* deployment.redis("ZCARD", deployment.key(`limits:open:${key.id}`)), 0)
    })
  )

  it.live("connections that have nothing to wait for do not hold the exit", () =>
    Effect.gen(function* () {
      const { gateway, key } = yield* setting(30)
      const silent = yield* RawConnection.open(gateway.proxy)
      const idle = yield* RawConnection.open(gateway.proxy)
      idle.write(RawConnection.request("GET /no/such/route", { authorization: `Bearer ${key.raw}` }))
      yield* idle.until(/unsupported_route/)
      const operator = yield* RawConnection.open(gateway.control)
      operator.write(RawConnection.request("GET /admin-ui/healthz"))
      yield* operator.until(/"ok"/)
      const [took, code] = yield* Effect.timed(
        Effect.suspend(() => {
          gateway.signal("SIGTERM")
          return exitOf(gateway)
        })
      )
      assert.strictEqual(code, 0)
      assert.isBelow(Duration.toSeconds(took), 25)
      for (const connection of [silent, idle, operator]) yield* connection.closed
    })
  )

  it.live("clients that never finish their request, or never read their answer, hold it no longer than the drain", () =>
    Effect.gen(function* () {
      const { gateway, key } = yield* setting(1)
      const halfHead = yield* RawConnection.open(gateway.proxy)
      halfHead.write("POST /v1/chat/completions HTTP/1.1\r\nhost: ga")
      const halfBody = yield* RawConnection.open(gateway.proxy)
      const headers = {
        authorization: `Bearer ${key.raw}`,
        "content-type": "application/json",
        "content-length": "100"
      }
      halfBody.write(RawConnection.request("POST /v1/chat/completions", headers, `{"model":`))
      const unread = yield* RawConnection.open(gateway.proxy)
      unread.write(RawConnection.request("POST /v1/messages", headers, `{"model":`))
      const [took, code] = yield* Effect.timed(
        Effect.suspend(() => {
          gateway.signal("SIGTERM")
          return exitOf(gateway)
        })
      )
      assert.strictEqual(code, 0)
      assert.isBelow(Duration.toSeconds(took), 30)
    })
  )
})
