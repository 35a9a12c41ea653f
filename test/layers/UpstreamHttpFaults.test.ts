import { assert, layer } from "@effect/vitest"
import { Effect, Exit } from "effect"
import * as UpstreamHttp from "../../layers/UpstreamHttp.ts"
import type { UpstreamError } from "../../src/services/Upstream.ts"
import { collector } from "../upstream/Collector.ts"
import { exchange, failure, left } from "../upstream/Exchanges.ts"
import { answer, chunk, head, refusing, type Script, serve } from "../upstream/ScriptedServer.ts"

const chunked = ["transfer-encoding", "chunked"]

layer(UpstreamHttp.layer, { excludeTestServices: true })("UpstreamHttp: faults", (it) => {
  it.effect("nobody listens", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* failure(yield* refusing), ["connect", "refused"])
    })
  )

  it.effect("no such host", () =>
    Effect.gen(function* () {
      // Too long a label to be asked for: no resolver is bothered.
      assert.deepStrictEqual(yield* failure(`http://${"x".repeat(64)}.invalid`), ["connect", "refused"])
    })
  )

  it.effect("a TLS handshake that is never answered", () =>
    Effect.gen(function* () {
      const { secureOrigin, peers } = yield* serve(() => {})
      assert.deepStrictEqual(yield* failure(secureOrigin, { headersWithinMs: 80 }), ["connect", "timeout"])
      yield* left(peers[0])
    })
  )

  it.effect("a TLS handshake that is answered with something else", () =>
    Effect.gen(function* () {
      const { secureOrigin } = yield* serve((peer) => peer.write("this is not TLS at all\r\n"))
      assert.deepStrictEqual(yield* failure(secureOrigin), ["connect", "refused"])
    })
  )

  const table: ReadonlyArray<
    readonly [name: string, script: Script, phase: UpstreamError["phase"], reason: UpstreamError["reason"]]
  > = [
    ["a stall before the head", async (peer) => void (await peer.request()), "headers", "timeout"],
    [
      "a stall within the head",
      async (peer) => {
        await peer.request()
        await peer.write("HTTP/1.1 200 OK\r\ncontent-le")
      },
      "headers",
      "timeout"
    ],
    [
      "a stall within the body",
      async (peer) => {
        await peer.request()
        await peer.write(head(200, chunked))
        await peer.write(chunk("some"))
      },
      "body",
      "timeout"
    ],
    [
      "an end instead of a head",
      async (peer) => {
        await peer.request()
        peer.end()
      },
      "headers",
      "reset"
    ],
    [
      "a reset instead of a head",
      async (peer) => {
        await peer.request()
        peer.reset()
      },
      "headers",
      "reset"
    ],
    [
      "an end within the head",
      async (peer) => {
        await peer.request()
        await peer.write("HTTP/1.1 200 OK\r\ncontent-le")
        peer.end()
      },
      "headers",
      "reset"
    ],
    ["an end within a chunk", cut(head(200, chunked), "a\r\nonly"), "body", "reset"],
    ["an end between two chunks", cut(head(200, chunked), chunk("only")), "body", "reset"],
    [
      "an end within a chunk of a response that closes",
      cut(head(200, [...chunked, "connection", "close"]), "a\r\nonly"),
      "body",
      "reset"
    ],
    ["an end before the length", cut(head(200, ["content-length", "10"]), "only"), "body", "reset"],
    [
      "an end before the length of a response that closes",
      cut(head(200, ["content-length", "10", "connection", "close"]), "only"),
      "body",
      "reset"
    ],
    ["an end within a character", cut(head(200, chunked), chunk(Buffer.from("世").subarray(0, 2))), "body", "reset"],
    [
      "a reset of a body without a length",
      async (peer) => {
        await peer.request()
        await peer.write(`${head(200)}only`)
        peer.reset()
      },
      "body",
      "reset"
    ],
    ["garbage", cut("\u0016\u0003\u0001 what is this\r\n\r\n", ""), "headers", "malformed"],
    ["another protocol", cut("SSH-2.0-OpenSSH_9.6\r\n", ""), "headers", "malformed"],
    ["a length that is not a number", cut(head(200, ["content-length", "ten"]), "only"), "headers", "malformed"],
    ["two lengths", cut(head(200, ["content-length", "4", "content-length", "5"]), "only"), "headers", "malformed"],
    ["a chunk size that is not hexadecimal", cut(head(200, chunked), "zz\r\nonly\r\n"), "body", "malformed"],
    ["a head without end", cut(head(200, ["x-long", "x".repeat(20_000)]), ""), "headers", "malformed"],
    ["a switch of protocols that nobody asked for", cut(head(101, ["upgrade", "h2c"]), ""), "headers", "malformed"],
    ["a 100 that nobody asked for", cut(head(100), answer("ok")), "headers", "malformed"]
  ]

  for (const [name, script, phase, reason] of table) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const { origin } = yield* serve(script)
        const within = reason === "timeout" ? 1_000 : 30_000
        const deadlines = { headersWithinMs: within, idleWithinMs: within }
        assert.deepStrictEqual(yield* failure(origin, deadlines), [phase, reason])
      })
    )
  }

  it.effect("what came before the cut has reached the sink", () =>
    Effect.gen(function* () {
      const sink = collector()
      const { origin } = yield* serve(cut(head(200, chunked), chunk("first")))
      yield* Effect.flip(exchange(origin, sink))
      assert.strictEqual(sink.body.toString(), "first")
    })
  )

  it.effect("bytes beyond the length are nobody's answer", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(peer.index === 0 ? answer("mine") + answer("smuggled") : answer("yours"))
      })
      const first = collector()
      const second = collector()
      yield* exchange(origin, first)
      yield* exchange(origin, second)
      assert.deepStrictEqual([first.body.toString(), second.body.toString()], ["mine", "yours"])
      assert.strictEqual(peers.length, 2)
    })
  )

  it.effect("a request body that breaks off is told to the server", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(() => {})
      const body = async function* () {
        yield Buffer.from("half of ")
        throw new Error("the client left")
      }
      const broken = exchange(origin, collector(), { method: "POST", body: body() })
      const error = yield* Effect.flip(broken)
      assert.deepStrictEqual([error.phase, error.reason], ["headers", "stopped"])
      yield* left(peers[0])
    })
  )

  it.effect("an answer may come before the request body has gone", () =>
    Effect.gen(function* () {
      const { origin } = yield* serve(async (peer) => {
        peer.stopReading()
        await peer.write(answer("enough", 413))
      })
      let returned = false
      const endless = async function* () {
        try {
          for (;;) yield Buffer.alloc(65_536)
        } finally {
          returned = true
        }
      }
      const sink = collector()
      yield* exchange(origin, sink, { method: "POST", body: endless() })
      assert.strictEqual(sink.status, 413)
      yield* Effect.promise(() => new Promise(setImmediate))
      assert.isTrue(returned)
    })
  )

  it.effect("a sink that throws and a request that is not HTTP are defects", () =>
    Effect.gen(function* () {
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(answer("ok"))
      })
      const bug = new Error("bug")
      const thrown = yield* Effect.exit(
        exchange(
          origin,
          collector({
            head: () => {
              throw bug
            }
          })
        )
      )
      assert.deepStrictEqual(thrown, Exit.die(bug))
      for (const mistake of [
        { target: "no slash" },
        { headers: ["bad name", "x"] },
        { method: "NO SPACE" },
        { origin: "nowhere" }
      ]) {
        const exit = yield* Effect.exit(exchange(origin, collector(), mistake))
        assert.isTrue(Exit.hasDies(exit))
      }
    })
  )

  it.effect.each([
    ["goes on", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nok"],
    ["ends", answer("ok")]
  ] as const)("a sink that throws at a small chunk of a response that %s is a defect of its exchange", ([, response]) =>
    Effect.gen(function* () {
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(response)
      })
      const bug = new Error("bug")
      const chunk = () => {
        throw bug
      }
      assert.deepStrictEqual(yield* Effect.exit(exchange(origin, collector({ chunk }))), Exit.die(bug))
    })
  )
})

function cut(first: string | Uint8Array, then: string | Uint8Array): Script {
  return async (peer) => {
    await peer.request()
    await peer.write(first)
    await peer.write(then)
    peer.end()
  }
}
