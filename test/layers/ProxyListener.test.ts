import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as ProxyListener from "../../layers/ProxyListener.ts"
import { ProxyApp } from "../../src/gateway/ProxyApp.ts"
import * as Billing from "../../src/gateway/usage/Billing.ts"
import { Lifecycle, type Phase } from "../../src/process/Lifecycle.ts"
import * as LocalPort from "../LocalPort.ts"
import * as RawConnection from "../RawConnection.ts"

const app = Layer.succeed(ProxyApp, {
  handleUnsafe: (wire, done) => {
    wire.respond(200, [], "served")
    done({ status: 200, error: undefined, streamed: false, aborted: false, bill: Billing.unbilled })
    return () => {}
  }
})

/** A listener that closes in this phase, with a connection that has had a response and one that has sent nothing. */
const closing = Effect.fnUntraced(function* (phase: Phase) {
  const port = yield* LocalPort.free
  const scope = yield* Scope.make()
  const listener = ProxyListener.layer({ host: "127.0.0.1", port }, "30 seconds", { total: 9, perAddress: 9 })
  yield* Layer.buildWithScope(Layer.provide(listener, [app, Lifecycle.layer(phase)]), scope)
  const origin = `http://127.0.0.1:${port}`
  const [idle, silent] = yield* Effect.all([RawConnection.open(origin), RawConnection.open(origin)])
  idle.write(get)
  yield* idle.until(/served/)
  const closed = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
  return { closed, idle, origin, port, silent }
})

/** Node 22 does not close a connection that has sent nothing before the drain ends. */
const ended = (closed: Fiber.Fiber<void>) => Effect.andThen(TestClock.adjust("30 seconds"), Fiber.join(closed))

const get = RawConnection.request("GET /v1/models")

describe("a proxy listener whose process ends", () => {
  it.effect("closes connections at once that wait for no response", () =>
    Effect.gen(function* () {
      const { closed, idle } = yield* closing("draining")
      assert.notInclude(yield* idle.closed, "connection: close")
      yield* ended(closed)
    })
  )
})

describe("a proxy listener that another process takes over", () => {
  it.effect("accepts no connections, and serves one more request on those that it has", () =>
    Effect.gen(function* () {
      const { closed, idle, port, silent } = yield* closing("retiring")
      assert.isTrue(Exit.isFailure(yield* Effect.exit(LocalPort.answers(port))))
      for (const connection of [idle, silent]) {
        connection.write(get)
        const text = yield* connection.closed
        assert.match(text, /connection: close.*served$/is)
      }
      yield* Fiber.join(closed)
    })
  )

  it.effect("closes connections that are not used for 5 seconds", () =>
    Effect.gen(function* () {
      const { closed, idle } = yield* closing("retiring")
      yield* TestClock.adjust("4999 millis")
      assert.isUndefined(closed.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* idle.closed
      yield* ended(closed)
    })
  )
})
