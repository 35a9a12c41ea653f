import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit } from "effect"
import * as WireNode from "../../layers/http/WireNode.ts"
import * as RawConnection from "../RawConnection.ts"
import { portOf } from "../upstream/SimulatorServer.ts"

/** More than the operating systems of both sides hold for a connection. */
const body = Buffer.alloc(67_108_864, "x")

/** Answers requests to /long with `body`, and then tells `flushed`. */
const serving = (withinMs: number, flushed: Deferred.Deferred<void>, other?: (outgoing: ServerResponse) => void) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const server = createServer((incoming: IncomingMessage, outgoing) => {
          if (incoming.url !== "/long") return other?.(outgoing)
          const wire = WireNode.make(incoming, outgoing)
          wire.head(200, ["content-length", String(body.length)])
          assert.isFalse(wire.end(body))
          wire.onFlushed(() => Deferred.doneUnsafe(flushed, Exit.void), withinMs)
        })
        await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
        return server
      }),
      (server) =>
        Effect.promise(async () => {
          server.closeAllConnections()
          await new Promise((closed) => server.close(closed))
        })
    ),
    (server) => `http://127.0.0.1:${portOf(server.address())}`
  )

const long = RawConnection.request("GET /long", { connection: "close" })

describe("the end of a response", () => {
  it.live("closes the connection of a client that does not read it", () =>
    Effect.gen(function* () {
      const flushed = yield* Deferred.make<void>()
      const connection = yield* RawConnection.open(yield* serving(200, flushed))
      connection.write(long)
      connection.pause()
      yield* Deferred.await(flushed)
      connection.resume()
      assert.isBelow((yield* connection.closed).length, body.length)
    })
  )

  it.live("reaches a client that reads slowly, however long it takes in all", () =>
    Effect.gen(function* () {
      const flushed = yield* Deferred.make<void>()
      // A full window opens in steps of megabytes, for each of which this client takes up to half a second.
      const withinMs = 1_000
      const connection = yield* RawConnection.open(yield* serving(withinMs, flushed))
      connection.write(long)
      const startedAt = performance.now()
      yield* Effect.forkChild(
        Effect.forever(
          Effect.gen(function* () {
            const before = connection.received().length
            connection.resume()
            yield* Effect.repeat(Effect.sleep("1 millis"), {
              until: () => connection.received().length > before + 262_144
            })
            connection.pause()
            yield* Effect.sleep("50 millis")
          })
        )
      )
      yield* Deferred.await(flushed)
      assert.isAbove(performance.now() - startedAt, withinMs)
      assert.isTrue(RawConnection.answerOf(yield* connection.closed).whole)
    })
  )

  it.live("waits in a pipeline for the responses before it, without a limit of its own", () =>
    Effect.gen(function* () {
      const flushed = yield* Deferred.make<void>()
      const first = yield* Deferred.make<ServerResponse>()
      const origin = yield* serving(500, flushed, (outgoing) => Deferred.doneUnsafe(first, Exit.succeed(outgoing)))
      const connection = yield* RawConnection.open(origin)
      connection.write(RawConnection.request("GET /first") + long)
      const outgoing = yield* Deferred.await(first)
      yield* Effect.sleep("1 second")
      outgoing.end("first")
      yield* Deferred.await(flushed)
      const received = yield* connection.closed
      assert.include(received.slice(0, 1_000), "first")
      assert.isAbove(received.length, body.length)
    })
  )

  it.live("tells that the connection has closed before a pipelined response began", () =>
    Effect.gen(function* () {
      const flushed = yield* Deferred.make<void>()
      const first = yield* Deferred.make<ServerResponse>()
      const origin = yield* serving(60_000, flushed, (outgoing) => Deferred.doneUnsafe(first, Exit.succeed(outgoing)))
      const connection = yield* RawConnection.open(origin)
      connection.write(RawConnection.request("GET /first") + long)
      const outgoing = yield* Deferred.await(first)
      connection.destroy()
      yield* Deferred.await(flushed)
      assert.isTrue(outgoing.destroyed)
    })
  )
})
