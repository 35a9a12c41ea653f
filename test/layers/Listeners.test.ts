import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { HttpServer, HttpServerResponse } from "effect/http"
import * as Listeners from "../../layers/Listeners.ts"
import * as RawConnection from "../RawConnection.ts"

it.live("what is no HTTP is refused as the listener's other refusals look", () =>
  Effect.gen(function* () {
    const form: Listeners.RefusalFormat = ({ message }) => JSON.stringify({ detail: message })
    const served = HttpServer.serve(Effect.succeed(HttpServerResponse.empty())).pipe(
      Layer.provideMerge(Listeners.serverLayer({ host: "127.0.0.1", port: 0 }, "1 second", { format: form }))
    )
    const { address } = Context.get(yield* Layer.build(served), HttpServer.HttpServer)
    for (const [sent, status, message] of [
      ["GARBAGE\r\n\r\n", 400, "The request is not valid HTTP/1.1. This port accepts neither TLS nor HTTP/2."],
      [
        "GET / HTTP/1.1\r\nhost: x\r\nlast-event-id: a\r\n\0: b\r\n\r\n",
        400,
        "The request is not valid HTTP/1.1. This port accepts neither TLS nor HTTP/2."
      ],
      [
        `GET / HTTP/1.1\r\nx: ${"y".repeat(20_000)}\r\n\r\n`,
        431,
        "The request's headers are larger than 16 KiB. Send smaller headers."
      ]
    ] as const) {
      const connection = yield* RawConnection.open(`http://127.0.0.1:${"port" in address ? address.port : 0}`)
      connection.write(sent)
      const answer = RawConnection.answerOf(yield* connection.closed)
      assert.strictEqual(answer.status, status)
      assert.deepStrictEqual(JSON.parse(answer.body.toString()), { detail: message })
    }
  }).pipe(Effect.scoped)
)

it.live(
  "a body that does not come holds its connection for no longer than a request may take, also when it is refused",
  () =>
    Effect.gen(function* () {
      const form: Listeners.RefusalFormat = ({ code }) => JSON.stringify({ code })
      const options = { format: form, requestTimeout: "2 seconds" } as const
      const served = HttpServer.serve(Effect.succeed(HttpServerResponse.empty({ status: 401 }))).pipe(
        Layer.provideMerge(Listeners.serverLayer({ host: "127.0.0.1", port: 0 }, "1 second", options))
      )
      const { address } = Context.get(yield* Layer.build(served), HttpServer.HttpServer)
      const connection = yield* RawConnection.open(`http://127.0.0.1:${"port" in address ? address.port : 0}`)
      connection.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nslow")
      assert.match(String(yield* connection.closed), /^HTTP\/1\.1 401 [\s\S]*request_body_timeout/)
    }).pipe(Effect.scoped, Effect.timeout("20 seconds"))
)

it.live("a listener has so many connections open at once, and refuses those beyond in its own form", () =>
  Effect.gen(function* () {
    const form: Listeners.RefusalFormat = ({ message }) => JSON.stringify({ detail: message })
    const options = { format: form, connectionLimits: { total: 3, perAddress: 2 } }
    const served = HttpServer.serve(Effect.succeed(HttpServerResponse.empty())).pipe(
      Layer.provideMerge(Listeners.serverLayer({ host: "127.0.0.1", port: 0 }, "1 second", options))
    )
    const { address } = Context.get(yield* Layer.build(served), HttpServer.HttpServer)
    const open = RawConnection.open(`http://127.0.0.1:${"port" in address ? address.port : 0}`)
    // A server accepts connections in their order.
    const [first] = [yield* open, yield* open]
    assert.match(String(yield* (yield* open).closed), /^HTTP\/1\.1 503 [\s\S]*retry-after: 1[\s\S]*\{"detail":/)
    first.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert.match(String(yield* first.closed), /^HTTP\/1\.1 204 /)
    const next = yield* open
    next.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert.match(String(yield* next.closed), /^HTTP\/1\.1 204 /)
  }).pipe(Effect.scoped, Effect.timeout("20 seconds"))
)
