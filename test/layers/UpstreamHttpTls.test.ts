import * as net from "node:net"
import * as tls from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as UpstreamHttp from "../../layers/UpstreamHttp.ts"
import { Upstream } from "../../src/services/Upstream.ts"
import { selfSigned, trusted } from "../SelfSigned.ts"
import { collector } from "../upstream/Collector.ts"
import { head } from "../upstream/ScriptedServer.ts"
import { portOf } from "../upstream/SimulatorServer.ts"

describe("UpstreamHttp over TLS", () => {
  it.live("names the host, checks who answers, and resumes the session", () =>
    Effect.gen(function* () {
      const server = yield* tlsServer()
      const stranger = yield* Effect.flip(exchange(server.origin))
      assert.deepStrictEqual([stranger.phase, stranger.reason], ["connect", "refused"])

      yield* trusted(server.certificate)
      assert.strictEqual(yield* exchange(server.origin), "ok")
      assert.strictEqual(yield* exchange(server.origin), "ok")
      assert.deepStrictEqual(server.connections, [
        { servername: "localhost", resumed: false },
        { servername: "localhost", resumed: true }
      ])
    }).pipe(Effect.provide(UpstreamHttp.layer))
  )

  it.live("has the time of an answer for the connection, and once more for the answer", () =>
    Effect.gen(function* () {
      const server = yield* tlsServer({ handshakeAfterMs: 1_200, answerAfterMs: 1_200 })
      yield* trusted(server.certificate)
      assert.strictEqual(yield* exchange(server.origin), "ok")
    }).pipe(Effect.provide(UpstreamHttp.layer))
  )
})

const exchange = (origin: string) =>
  Effect.gen(function* () {
    const upstream = yield* Upstream
    const sink = collector()
    const request = { origin, method: "GET", target: "/", headers: [], body: null }
    yield* upstream.exchange({ ...request, headersWithinMs: 2_000, idleWithinMs: 2_000 }, sink)
    return sink.body.toString()
  })

/** Answers once on each connection, and hangs up. */
const tlsServer = ({ answerAfterMs = 0, handshakeAfterMs = 0 } = {}) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const { certificate, key } = selfSigned()
      const connections: Array<{ readonly servername: string | false | null; readonly resumed: boolean }> = []
      const secure = tls.createServer({ cert: certificate, key }, (socket) => {
        connections.push({ servername: socket.servername, resumed: socket.isSessionReused() })
        const answer = `${head(200, ["content-length", "2", "connection", "close"])}ok`
        socket.once("data", () => setTimeout(() => socket.end(answer), answerAfterMs))
      })
      secure.on("tlsClientError", (_, socket) => socket.destroy())
      const server = net.createServer((socket) => setTimeout(() => secure.emit("connection", socket), handshakeAfterMs))
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      return { server, certificate, connections, origin: `https://localhost:${portOf(server.address())}` }
    }),
    ({ server }) => Effect.promise(() => new Promise((closed) => server.close(closed)))
  )
