import { Socket } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { OpenConnections } from "../../layers/http/OpenConnections.ts"
import * as ProxyListener from "../../layers/ProxyListener.ts"
import { ProxyApp } from "../../src/gateway/ProxyApp.ts"
import * as Billing from "../../src/gateway/usage/Billing.ts"
import { eventually } from "../Eventually.ts"
import * as LocalPort from "../LocalPort.ts"
import * as RawConnection from "../RawConnection.ts"

const from = (address: string): Socket => Object.defineProperty(new Socket(), "remoteAddress", { value: address })

it("connections are counted in all and for each address, until they close", async () => {
  const open = new OpenConnections({ total: 3, perAddress: 2 })
  const first = from("192.0.2.1")
  assert.isTrue(open.admits(first))
  assert.isTrue(open.admits(from("::ffff:192.0.2.2")))
  assert.isTrue(open.admits(from("192.0.2.1")))
  assert.isFalse(open.admits(from("192.0.2.3")))
  first.destroy()
  await new Promise((resolve) => setImmediate(resolve))
  assert.isTrue(open.admits(from("192.0.2.1")))
})

it.live("a connection beyond those that an address may have is refused by name, and a place becomes free again", () =>
  Effect.gen(function* () {
    const port = yield* LocalPort.free
    const program = Layer.succeed(ProxyApp, {
      handleUnsafe: (wire, done) => {
        wire.respond(200, [], "served")
        done({ status: 200, error: undefined, streamed: false, aborted: false, bill: Billing.unbilled })
        return () => {}
      }
    })
    const most = { total: 100, perAddress: 2 }
    const listener = ProxyListener.layer({ host: "127.0.0.1", port }, "1 millis", most).pipe(Layer.provide(program))
    yield* Layer.build(listener)
    const origin = `http://127.0.0.1:${port}`
    const served = Effect.gen(function* () {
      const connection = yield* RawConnection.open(origin)
      connection.write(RawConnection.request("GET /"))
      yield* connection.until(/served$/)
      return connection
    })
    const first = yield* served
    yield* served
    const answer = RawConnection.answerOf(yield* (yield* RawConnection.open(origin)).closed)
    assert.strictEqual(answer.status, 503)
    assert.match(answer.head, /retry-after: 1\b/i)
    assert.match(answer.body.toString(), /gateway_overloaded/)
    first.destroy()
    yield* eventually(
      Effect.flatMap(RawConnection.open(origin), (connection) => {
        connection.write(RawConnection.request("GET /", { connection: "close" }))
        return connection.closed
      }).pipe(Effect.scoped),
      (received) => received.endsWith("served")
    )
  }).pipe(Effect.scoped)
)
