import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as UpstreamHttp from "../../layers/UpstreamHttp.ts"
import type { Upstream } from "../../src/services/Upstream.ts"
import { collector } from "../upstream/Collector.ts"
import { exchange } from "../upstream/Exchanges.ts"
import { answer, chunk, head, serve } from "../upstream/ScriptedServer.ts"

const chunked = ["transfer-encoding", "chunked"]

layer(UpstreamHttp.layer, { excludeTestServices: true })("UpstreamHttp: bytes", (it) => {
  it.effect("target, header case, order and twins arrive as they were given", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(answer("ok"))
      })
      yield* exchange(origin, collector(), {
        method: "PURGE",
        target: "/a/../b%2Fc?x=1&&y",
        headers: ["X-Two", "b", "x-two", "a", "ACCEPT-Encoding", "gzip", "X-Latin", "caf\u00e9"]
      })
      assert.strictEqual(
        peers[0]?.received,
        [
          "PURGE /a/../b%2Fc?x=1&&y HTTP/1.1",
          `host: ${origin.slice("http://".length)}`,
          "connection: keep-alive",
          "X-Two: b",
          "x-two: a",
          "ACCEPT-Encoding: gzip",
          "X-Latin: caf\u00e9",
          "",
          ""
        ].join("\r\n")
      )
    })
  )

  it.effect("status, header bytes, order and twins come back as they were sent", () =>
    Effect.gen(function* () {
      const headers = ["SET-Cookie", "a=1", "X-Odd", "caf\u00e9", "set-cookie", "b=2", "Content-Length", "2"]
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(Buffer.from(`${head(299, headers)}ok`, "latin1"))
      })
      const sink = collector()
      yield* exchange(origin, sink)
      assert.strictEqual(sink.status, 299)
      assert.deepStrictEqual(sink.headers, headers)
      assert.strictEqual(sink.body.toString(), "ok")
    })
  )

  it.effect("a redirect is an answer, and so is a compressed body", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(head(302, ["location", "/elsewhere", "content-encoding", "gzip", "content-length", "3"]))
        await peer.write(Buffer.of(0x1f, 0x8b, 0x00))
      })
      const sink = collector()
      yield* exchange(origin, sink)
      assert.strictEqual(sink.status, 302)
      assert.deepStrictEqual([...sink.body], [0x1f, 0x8b, 0x00])
      assert.strictEqual(peers.length, 1)
    })
  )

  it.effect("informational responses are skipped", () =>
    Effect.gen(function* () {
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(head(103, ["link", "</a.css>"]) + head(102) + answer("ok"))
      })
      const sink = collector()
      yield* exchange(origin, sink)
      assert.strictEqual(sink.status, 200)
      assert.strictEqual(sink.body.toString(), "ok")
    })
  )

  it.effect("204, 304 and HEAD have no body, whatever their headers say", () =>
    Effect.gen(function* () {
      const { origin } = yield* serve(async (peer) => {
        for (;;) {
          const status = Number(/^\S+ \/(\d+)/.exec(await peer.request())?.[1])
          await peer.write(head(status, status === 204 ? [] : ["content-length", "5"]))
        }
      })
      for (const [method, target] of [
        ["GET", "/204"],
        ["GET", "/304"],
        ["HEAD", "/200"]
      ] as const) {
        const sink = collector()
        yield* exchange(origin, sink, { method, target })
        assert.strictEqual(sink.status, Number(target.slice(1)))
        assert.strictEqual(sink.chunks.length, 0)
      }
    })
  )

  it.effect("a body without a length ends with the connection", () =>
    Effect.gen(function* () {
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(`${head(200)}until the end`)
        peer.end()
      })
      const sink = collector()
      yield* exchange(origin, sink)
      assert.strictEqual(sink.body.toString(), "until the end")
    })
  )

  it.effect("request bodies: one write with its length, or chunks as they come", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(async (peer) => {
        for (;;) {
          await peer.request()
          await peer.write(answer("ok"))
        }
      })
      const post = { method: "POST", target: "/", headers: [] }
      yield* exchange(origin, collector(), { ...post, body: Buffer.from("whole") })
      yield* exchange(origin, collector(), { ...post, body: new Uint8Array() })
      yield* exchange(origin, collector(), { ...post, body: parts(["a", "bc"]) })
      const received = peers.map((peer) => peer.received).join("")
      assert.match(received, /content-length: 5\r\n\r\nwhole/)
      assert.match(received, /content-length: 0\r\n\r\nPOST/)
      assert.match(received, /transfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n$/)
    })
  )

  it.effect("chunks of one byte that come together reach the sink in few pieces", () =>
    Effect.gen(function* () {
      const text = "abcdefgh".repeat(2_500)
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(head(200, chunked) + [...text].map((letter) => `1\r\n${letter}\r\n`).join("") + chunk(""))
      })
      const sink = collector()
      yield* exchange(origin, sink)
      assert.strictEqual(sink.body.toString(), text)
      assert.isBelow(sink.chunks.length, 100)
    })
  )

  it.effect("however the server splits the body, the sink gets the same bytes", () =>
    Effect.gen(function* () {
      let plan: { readonly body: Uint8Array; readonly cuts: ReadonlyArray<number>; readonly framed: boolean } = {
        body: new Uint8Array(),
        cuts: [],
        framed: false
      }
      const { origin } = yield* serve(async (peer) => {
        for (;;) {
          await peer.request()
          const { body, cuts, framed } = plan
          const pieces = split(body, cuts)
          await peer.write(head(200, framed ? chunked : ["content-length", String(body.byteLength)]))
          for (const piece of pieces) await peer.write(framed ? chunk(piece) : piece)
          if (framed) await peer.write(chunk(""))
        }
      })
      const run = Effect.runPromiseWith(yield* Effect.context<Upstream>())
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc.uint8Array({ maxLength: 300 }),
            fc.array(fc.nat(300), { maxLength: 8 }),
            fc.boolean(),
            async (body, cuts, framed) => {
              plan = { body, cuts, framed }
              const sink = collector()
              await run(exchange(origin, sink))
              assert.deepStrictEqual([...sink.body], [...body])
            }
          ),
          { numRuns: 60 }
        )
      )
    })
  )
})

const parts = async function* (texts: ReadonlyArray<string>) {
  for (const text of texts) yield Buffer.from(text)
}

const split = (body: Uint8Array, cuts: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const at = [0, ...cuts.filter((cut) => cut < body.byteLength).sort((a, b) => a - b), body.byteLength]
  return at.flatMap((from, i) => {
    const to = at[i + 1] ?? from
    return to > from ? [body.subarray(from, to)] : []
  })
}
