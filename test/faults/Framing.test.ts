import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../Eventually.ts"
import { codeOf } from "../e2e/Calls.ts"
import * as RawConnection from "../RawConnection.ts"
import { asking, available, headersOf, Subject } from "./Subject.ts"

const chat = "/v1/chat/completions"
const hidden = `GET /v1/models HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer smuggled\r\n\r\n`

/** Requests that two servers could cut into messages at different places: refused, with the connection. */
const ambiguous: ReadonlyArray<readonly [name: string, fields: ReadonlyArray<string>, body: string]> = [
  ["two lengths", ["content-length: 4", `content-length: ${4 + hidden.length}`], `{  }${hidden}`],
  ["two lengths in one field", [`content-length: 4, ${4 + hidden.length}`], `{  }${hidden}`],
  ["a length and chunks", ["content-length: 4", "transfer-encoding: chunked"], `0\r\n\r\n${hidden}`],
  ["chunks and a length", ["transfer-encoding: chunked", "content-length: 4"], `0\r\n\r\n${hidden}`],
  ["chunks that are not the last coding", ["transfer-encoding: chunked, identity"], `0\r\n\r\n${hidden}`],
  ["a coding that is nearly chunked", ["transfer-encoding: xchunked"], `0\r\n\r\n${hidden}`],
  ["chunked behind a control character", ["transfer-encoding:\x0bchunked"], `0\r\n\r\n${hidden}`],
  ["a space before the colon", ["transfer-encoding : chunked"], `0\r\n\r\n${hidden}`],
  ["a folded field", ["transfer-encoding:\r\n chunked", "content-length: 4"], `0\r\n\r\n${hidden}`],
  ["a signed length", ["content-length: +4"], `{  }${hidden}`],
  ["a hexadecimal length", ["content-length: 0x4"], `{  }${hidden}`],
  ["a chunk length that is none", ["transfer-encoding: chunked"], `4x\r\n{  }\r\n0\r\n\r\n${hidden}`],
  ["a chunk longer than it says", ["transfer-encoding: chunked"], `2\r\n{  }\r\n0\r\n\r\n${hidden}`],
  ["a chunk length without end", ["transfer-encoding: chunked"], `${"f".repeat(17)}\r\n{  }\r\n0\r\n\r\n${hidden}`],
  ["a field ended by a bare line feed", ["x: y\ntransfer-encoding: chunked"], `0\r\n\r\n${hidden}`],
  ["a NUL in a field", ["x: a\x00b", "content-length: 4"], `{  }${hidden}`]
]

/** What is HTTP, and nothing that this listener serves. */
const unserved: ReadonlyArray<readonly [name: string, request: string, status: number]> = [
  ["an absolute target", RawConnection.request("GET http://127.0.0.1/v1/models"), 404],
  ["an absolute target elsewhere", RawConnection.request("GET http://169.254.169.254/latest"), 404],
  ["OPTIONS *", RawConnection.request("OPTIONS *"), 404],
  ["a method that HTTP knows and nobody uses here", RawConnection.request("PURGE /v1/models"), 404],
  ["TRACE", RawConnection.request("TRACE /v1/models"), 404],
  ["a method that HTTP does not know", RawConnection.request("BREW /v1/models"), 400],
  ["a version that is none", "GET /v1/models HTTP/9.9\r\nhost: gateway\r\n\r\n", 400],
  ["no host", "GET /v1/models HTTP/1.1\r\n\r\n", 400],
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
  ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400],
  ["a target of 20 KiB", RawConnection.request(`GET /v1/models?${"x".repeat(20_000)}`), 431],
  ["headers of 20 KiB", RawConnection.request("GET /v1/models", { "x-filler": "x".repeat(20_000) }), 431]
]

describe.skipIf(!available)("on the wire", () => {
  layer(Subject.layer, { excludeTestServices: true })((it) => {
    for (const [name, fields, body] of ambiguous) {
      it.effect(`${name}: no second request comes out of it, and the connection ends`, () =>
        Effect.gen(function* () {
          const subject = yield* Subject
          const before = subject.upstreamSaw().length
          const connection = yield* subject.connect
          const { authorization } = headersOf(subject)
          const head = [`POST ${chat} HTTP/1.1`, "host: gateway", `authorization: ${authorization}`, ...fields]
          connection.write(Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`, "latin1"))
          const received = yield* connection.closed
          const { body: refusal, status } = RawConnection.answerOf(received)
          assert.deepStrictEqual([status, codeOf({ text: refusal.toString() })], [400, "malformed_request"])
          assert.lengthOf(received.match(/HTTP\/1\.1 /g) ?? [], 1)
          assert.strictEqual(subject.upstreamSaw().length, before)
          yield* subject.unharmed
        })
      )
    }

    for (const [name, request, status] of unserved) {
      it.effect(`${name}: ${status}, and nothing is forwarded`, () =>
        Effect.gen(function* () {
          const subject = yield* Subject
          const before = subject.upstreamSaw().length
          const connection = yield* subject.connect
          connection.write(Buffer.from(request, "latin1"))
          const received = yield* connection.until(/^HTTP\/1\.1 \d{3}/)
          assert.strictEqual(Number(received.slice(9, 12)), status)
          assert.strictEqual(subject.upstreamSaw().length, before)
          connection.destroy()
          yield* subject.unharmed
        })
      )
    }

    it.effect("CONNECT opens no tunnel", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const before = subject.upstreamSaw().length
        const connection = yield* subject.connect
        connection.write("CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: 127.0.0.1:22\r\n\r\n")
        assert.notMatch(yield* connection.closed, /^HTTP\/1\.1 2/)
        assert.strictEqual(subject.upstreamSaw().length, before)
        yield* subject.unharmed
      })
    )

    it.effect.each(["websocket", "h2c", "example/1"])("an upgrade to %s is not made, here or at the upstream", (to) =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const connection = yield* subject.connect
        const upgrade = {
          connection: "Upgrade, HTTP2-Settings",
          upgrade: to,
          "http2-settings": "AAMAAABkAAQAAP__",
          "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
          "sec-websocket-version": "13"
        }
        const get = { authorization: headersOf(subject)["authorization"] ?? "", ...upgrade }
        connection.write(RawConnection.request("GET /v1/models", get))
        const received = yield* connection.until(/\}$/)
        assert.match(received, /^HTTP\/1\.1 200 /)
        assert.notMatch(subject.upstreamSaw().at(-1) ?? "", /^(upgrade|http2-settings):/im)
        connection.destroy()
        yield* subject.unharmed
      })
    )

    it.effect("requests on one connection are answered in their order, those behind a slow one too", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const gate = Promise.withResolvers<void>()
        yield* subject.whenAsked("slow", async (peer) => {
          await gate.promise
          await peer.write('HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n"slow"')
        })
        const connection = yield* subject.connect
        const headers = headersOf(subject)
        connection.write(
          RawConnection.request(`POST ${chat}`, headers, asking("slow")) +
            RawConnection.request("GET /no/such/route", headers) +
            RawConnection.request(`POST ${chat}`, headers, "no JSON")
        )
        gate.resolve()
        const received = yield* connection.until(/invalid_request_body[\s\S]*\}$/)
        assert.deepStrictEqual(received.match(/HTTP\/1\.1 \d{3}/g), ["HTTP/1.1 200", "HTTP/1.1 404", "HTTP/1.1 400"])
        yield* subject.unharmed
      })
    )

    it.effect("a client that hangs up leaves nothing running, also of what waits behind a slow answer", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const { connect, unharmed, upstreamSaw, whenAsked } = subject
        for (const model of ["slow", "behind"]) yield* whenAsked(model, () => new Promise(() => {}))
        const connection = yield* connect
        for (const model of ["slow", "behind"]) {
          const body = asking(model)
          const headers = { ...headersOf(subject), "content-length": String(body.length) }
          connection.write(RawConnection.request(`POST ${chat}`, headers, body))
        }
        yield* eventually(
          Effect.sync(() => upstreamSaw().filter((request) => /"model":"(slow|behind)"/.test(request)).length),
          (asked) => asked >= 2
        )
        connection.destroy()
        yield* unharmed
      })
    )

    it.effect("what is no HTTP, behind a request that is being answered, does not get into its answer", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        yield* subject.whenAsked("half", async (peer) => {
          await peer.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
          await peer.write("9\r\ndata: 1\n\n\r\n")
          await peer.closed
        })
        const connection = yield* subject.connect
        connection.write(RawConnection.request(`POST ${chat}`, headersOf(subject), asking("half")))
        yield* connection.until(/data: 1\n\n/)
        connection.write("no HTTP at all\r\n\r\n")
        const { body, whole } = RawConnection.answerOf(yield* connection.closed)
        assert.deepStrictEqual([body.toString(), whole], ["data: 1\n\n", false])
        assert.lengthOf(connection.received().match(/HTTP\/1\.1/g) ?? [], 1)
        yield* subject.unharmed
      })
    )

    it.effect("a body that stops being HTTP ends its request at once, not when its time is over", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        const connection = yield* subject.connect
        const headers = { ...headersOf(subject), "transfer-encoding": "chunked", "x-request-id": "bad-chunks" }
        connection.write(RawConnection.request(`POST ${chat}`, headers, "2\r\n{  }\r\n0\r\n\r\n"))
        yield* connection.closed
        yield* subject.unharmed
        const records = yield* subject.deployment.recorded(subject.key.id, 1)
        const record = records.find(({ request_id }) => request_id === "bad-chunks")
        assert.deepInclude(record, { status_code: 499, usage_source: "status_only", cost_nanos: null })
      })
    )

    it.effect("HTTP/1.0 gets its answer without chunks, and the end of the connection", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        yield* subject.whenAsked("old", async (peer) => {
          await peer.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
          await peer.write("9\r\ndata: 1\n\n\r\n0\r\n\r\n")
        })
        const connection = yield* subject.connect
        const request = RawConnection.request(`POST ${chat}`, headersOf(subject), asking("old"))
        connection.write(request.replace("HTTP/1.1", "HTTP/1.0"))
        const received = yield* connection.closed
        assert.match(received, /^HTTP\/1\.1 200 OK/)
        assert.notMatch(received, /transfer-encoding/i)
        assert.match(received, /\r\n\r\ndata: 1\n\n$/)
        assert.isUndefined(connection.broken())
        yield* subject.unharmed
      })
    )

    it.effect("HTTP/1.0 sees that an answer is cut, which has neither chunks nor a length to show it", () =>
      Effect.gen(function* () {
        const subject = yield* Subject
        for (const [version, broken] of [
          ["HTTP/1.0", "ECONNRESET"],
          ["HTTP/1.1", undefined]
        ] as const) {
          const seen = Promise.withResolvers<void>()
          yield* subject.whenAsked(`cut ${version}`, async (peer) => {
            await peer.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            await peer.write("9\r\ndata: 1\n\n\r\n")
            await seen.promise
            peer.reset()
          })
          const connection = yield* subject.connect
          const request = RawConnection.request(`POST ${chat}`, headersOf(subject), asking(`cut ${version}`))
          connection.write(request.replace(/ HTTP\/1\.1\r/, ` ${version}\r`))
          yield* connection.until(/data: 1\n\n/)
          seen.resolve()
          yield* connection.closed
          assert.strictEqual(connection.broken(), broken)
        }
        yield* subject.unharmed
      })
    )
  })
})
