import { connect } from "node:net"
import * as tls from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Broker } from "../../src/services/Broker.ts"
import * as RunningBroker from "../RunningBroker.ts"
import { selfSigned, trusted } from "../SelfSigned.ts"
import { portOf } from "../upstream/SimulatorServer.ts"

describe.skipIf(RunningBroker.server === null)("BrokerAmqp over TLS", () => {
  it.live("names the host, checks who answers, and works as without", () =>
    Effect.gen(function* () {
      const front = yield* terminator
      const layer = RunningBroker.layer({ url: front.url })
      const stranger = yield* Effect.flip(Broker.pipe(Effect.provide(layer)))
      assert.deepInclude(stranger, { operation: "connect", reason: "unreachable" })
      assert.match(stranger.message, /certificate/)
      yield* trusted(front.certificate)
      yield* Effect.gen(function* () {
        const { publish } = yield* Broker
        const queue = yield* RunningBroker.queue()
        const outcome = yield* publish({
          purpose: "tasks",
          exchange: "",
          routingKey: queue,
          content: new Uint8Array(300_000),
          properties: {}
        })
        assert.deepStrictEqual(outcome, { _tag: "Confirmed" })
      }).pipe(Effect.scoped, Effect.provide(layer))
      assert.deepStrictEqual(new Set(front.names), new Set(["localhost"]))
    }).pipe(Effect.scoped)
  )
})

/** Speaks TLS in front of the broker. */
const terminator = Effect.acquireRelease(
  Effect.promise(async () => {
    const { certificate, key } = selfSigned()
    const names: Array<string | false | null> = []
    const server = tls.createServer({ cert: certificate, key }, (socket) => {
      names.push(socket.servername)
      const broker = connect(RunningBroker.target())
      socket.pipe(broker).pipe(socket)
      socket.on("error", () => broker.destroy())
      broker.on("error", () => socket.destroy())
    })
    server.on("tlsClientError", (_, socket) => socket.destroy())
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
    const url = new URL((RunningBroker.server ?? "").replace("amqp:", "amqps:"))
    url.host = `localhost:${portOf(server.address())}`
    return { server, certificate, names, url: Redacted.make(url.href) }
  }),
  ({ server }) => Effect.promise(() => new Promise((closed) => server.close(closed)))
)
