import { createHash } from "node:crypto"
import { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Stream } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Listeners from "../../layers/Listeners.ts"
import * as ProxyListener from "../../layers/ProxyListener.ts"
import { ProxyApp } from "../../src/gateway/ProxyApp.ts"
import type { Wire } from "../../src/gateway/request/Wire.ts"
import * as Billing from "../../src/gateway/usage/Billing.ts"
import * as UsageTap from "../../src/gateway/usage/UsageTap.ts"
import { eventually } from "../Eventually.ts"
import { heldMiB, reachableMiB } from "../HeldMemory.ts"
import * as LocalPort from "../LocalPort.ts"
import * as RawConnection from "../RawConnection.ts"

/** A body may have any number of chunks of this size, also where reads split some of them. */
const smallest = 80
const bytes = 40_000 * smallest
/** A `Buffer` for each chunk takes about 19 MiB; for as many one-byte chunks as Node reads ahead by itself, 25 MiB. */
const mostMiB = 8

const head = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
const smallestChunks = Buffer.from(`50\r\n${"x".repeat(smallest)}\r\n`.repeat(bytes / smallest))
const oneByteChunks = Buffer.from("1\r\nx\r\n".repeat(262_144))
/** Node reads at least so many chunks ahead, and by itself 64 times as many. */
const readAhead = head.length + 6 * 1_000

/** How much memory a body in such chunks holds, which does not end, once `came` says that it is there. */
const heldBySending = (origin: string, chunks: Buffer, came: () => boolean) =>
  Effect.gen(function* () {
    const before = reachableMiB()
    const connection = yield* RawConnection.open(origin)
    connection.write(head)
    connection.write(chunks)
    yield* eventually(Effect.sync(came), (all) => all)
    return reachableMiB() - before
  })

/** The proxy listener, with a program that does this with a request. */
const proxying = (handle: (wire: Wire) => void) =>
  Effect.gen(function* () {
    const port = yield* LocalPort.free
    const program = Layer.succeed(ProxyApp, {
      handleUnsafe: (wire, done) => {
        handle(wire)
        return () => done({ status: 499, error: undefined, streamed: false, aborted: false, bill: Billing.unbilled })
      }
    })
    yield* Layer.build(
      ProxyListener.layer({ host: "127.0.0.1", port }, "1 millis", { total: 100, perAddress: 100 }).pipe(
        Layer.provide(program)
      )
    )
    return `http://127.0.0.1:${port}`
  })

/** A listener as the control and status routes have it, with a handler that answers this to a request. */
const serving = (handle: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<string, unknown>) =>
  Effect.gen(function* () {
    const handler = Effect.flatMap(HttpServerRequest.HttpServerRequest, handle)
    const served = HttpServer.serve(Effect.map(Effect.orDie(handler), (text) => HttpServerResponse.text(text))).pipe(
      Layer.provideMerge(Listeners.serverLayer({ host: "127.0.0.1", port: 0 }, "1 millis"))
    )
    const { address } = Context.get(yield* Layer.build(served), HttpServer.HttpServer)
    return `http://127.0.0.1:${"port" in address ? address.port : 0}`
  })

const bytesRead = ({ source }: HttpServerRequest.HttpServerRequest): number =>
  "socket" in source && source.socket instanceof Socket ? source.socket.bytesRead : 0

describe("a body in small chunks holds about as much memory as it has bytes", () => {
  it.live("while the gateway reads it", () =>
    Effect.gen(function* () {
      let taken = 0
      const lease = {
        grow: (more: number) => {
          taken += more
          return undefined
        },
        release: () => {}
      }
      const origin = yield* proxying((wire) => wire.readBody({ maxBytes: bytes, withinMs: 60_000, lease }, () => {}))
      assert.isAtMost(yield* heldBySending(origin, smallestChunks, () => taken === bytes), mostMiB)
    })
  )

  it.live("while a control or status route reads it", () =>
    Effect.gen(function* () {
      let read = () => 0
      const origin = yield* serving((request) => {
        read = () => bytesRead(request)
        return request.text
      })
      assert.isAtMost(
        yield* heldBySending(origin, smallestChunks, () => read() === head.length + smallestChunks.length),
        mostMiB
      )
    })
  )

  it.live("while nobody reads it", () =>
    Effect.gen(function* () {
      let read = () => 0
      const measured = yield* Deferred.make<void>()
      const origin = yield* serving((request) => {
        read = () => bytesRead(request)
        return Effect.as(Deferred.await(measured), "")
      })
      assert.isAtMost(yield* heldBySending(origin, oneByteChunks, () => read() >= readAhead), mostMiB)
      yield* Deferred.succeed(measured, undefined)
    })
  )

  it("in an answer whose usage is read", () => {
    const tap = UsageTap.json("a", bytes)
    const held = heldMiB(() => {
      for (let index = 0; index < bytes; index++) tap.push(Buffer.alloc(1, 0x20))
    })
    assert.isAtMost(held, mostMiB)
    assert.strictEqual(tap.observed().estimatedOutput, bytes / 4)
  })
})

describe("a body in more one-byte chunks than a client has reason to send", () => {
  it.live("is refused by name, and its connection ends", () =>
    Effect.gen(function* () {
      const connection = yield* RawConnection.open(yield* serving((request) => request.text))
      connection.write(head)
      connection.write("1\r\nx\r\n".repeat(8_193))
      const answer = RawConnection.answerOf(yield* connection.closed)
      assert.strictEqual(answer.status, 400)
      assert.match(answer.body.toString(), /more than 8192 chunks of less than 64 bytes.*"invalid_request_body"/)
    }).pipe(Effect.scoped)
  )

  it.live("ends its connection, where it is answered already", () =>
    Effect.gen(function* () {
      const connection = yield* RawConnection.open(
        yield* proxying((wire) => wire.respond(403, ["content-type", "text/plain"], "denied"))
      )
      connection.write(head)
      yield* connection.until(/denied$/)
      connection.write("1\r\nx\r\n".repeat(8_193))
      assert.match(String(yield* connection.closed), /^HTTP\/1\.1 403 [\s\S]*denied$/)
    }).pipe(Effect.scoped)
  )

  it.live("is read where it is not more", () =>
    Effect.gen(function* () {
      const origin = yield* serving((request) => Effect.map(request.text, (text) => `read ${text.length}`))
      const chunked = yield* RawConnection.open(origin)
      chunked.write(`${head}${"1\r\nx\r\n".repeat(8_192)}0\r\n\r\n`)
      yield* chunked.until(/read 8192$/)
    }).pipe(Effect.scoped)
  )
})

describe("a body in chunks of all sizes", () => {
  const chunks = Array.from({ length: 2_000 }, (_, index) =>
    Buffer.alloc(index % 97 === 0 ? 3_000 : (index % 5) + 1, index)
  )
  const digest = createHash("sha256").update(Buffer.concat(chunks)).digest("hex")
  const digestOf = (request: HttpServerRequest.HttpServerRequest, slowly: boolean) =>
    Effect.gen(function* () {
      const hash = createHash("sha256")
      yield* Stream.runForEach(request.stream, (chunk) =>
        Effect.andThen(
          Effect.sync(() => hash.update(chunk)),
          slowly ? Effect.sleep("1 millis") : Effect.void
        )
      )
      return hash.digest("hex")
    })
  const wholly = (request: HttpServerRequest.HttpServerRequest) =>
    Effect.map(request.arrayBuffer, (all) => createHash("sha256").update(Buffer.from(all)).digest("hex"))

  for (const [name, read] of [
    ["whole", wholly],
    ["as it comes", (request: HttpServerRequest.HttpServerRequest) => digestOf(request, false)],
    ["slowly", (request: HttpServerRequest.HttpServerRequest) => digestOf(request, true)],
    ["late", (request: HttpServerRequest.HttpServerRequest) => Effect.delay(wholly(request), "50 millis")]
  ] as const) {
    for (const pieces of ["at once", "piece by piece"] as const) {
      it.live(`is what was sent, sent ${pieces} and read ${name}`, () =>
        Effect.gen(function* () {
          const connection = yield* RawConnection.open(yield* serving(read))
          const framed = chunks.map((chunk) =>
            Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n")])
          )
          connection.write(head)
          if (pieces === "at once") connection.write(Buffer.concat(framed))
          else {
            yield* Effect.forEach(framed, (frame, index) => {
              connection.write(frame)
              return index % 50 === 0 ? Effect.sleep("1 millis") : Effect.void
            })
          }
          connection.write("0\r\n\r\n")
          assert.include(yield* connection.until(/[0-9a-f]{64}/), digest)
        })
      )
    }
  }

  it.live("goes on to a reader that waits for its next bytes, though none follow", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const origin = yield* serving((request) =>
        Effect.as(
          Stream.runForEach(request.stream, (chunk) => Effect.sync(() => seen.push(Buffer.from(chunk).toString()))),
          ""
        )
      )
      const connection = yield* RawConnection.open(origin)
      connection.write(`${head}1\r\na\r\n1\r\nb\r\n1\r\nc\r\n`)
      yield* eventually(
        Effect.sync(() => seen.join("")),
        (text) => text === "abc"
      )
    })
  )
})
