import assert from "node:assert/strict"
import { gzipSync } from "node:zlib"
import { Effect, Redacted } from "effect"
import { Egress, type EgressRequest } from "../../../src/services/Egress.ts"
import { law, type Suite } from "./law/Law.ts"
import { answer, head, refusing, type Script, serve } from "./upstream/ScriptedServer.ts"

/** Names of the same addresses that a filter of texts would not find. */
const refusedHosts = [
  "169.254.169.254",
  "2852039166",
  "0xa9fea9fe",
  "0251.0376.0251.0376",
  "169.254.43518",
  "[::ffff:169.254.169.254]",
  "[::ffff:a9fe:a9fe]",
  "[64:ff9b::a9fe:a9fe]",
  "[fd00:ec2::254]",
  "[fe80::1]",
  "0.0.0.0",
  "0",
  "[::]",
  "224.0.0.1",
  "255.255.255.255"
]

const invalidUrls = [
  "",
  "/path",
  "ftp://host/",
  "file:///etc/passwd",
  "http://",
  "http://user@127.0.0.1/",
  "http://:pass@127.0.0.1/",
  "http://127.0.0.1/#part"
]

const fetch = (url: string, options: Partial<EgressRequest> = {}) =>
  Effect.flatMap(Egress, (egress) => egress.fetch({ method: "GET", url, withinMs: 5_000, maxBytes: 1_024, ...options }))

const reason = (...request: Parameters<typeof fetch>) =>
  Effect.map(Effect.flip(fetch(...request)), (error) => error.reason)

/** Responds to the first request with these bytes. */
const responds =
  (bytes: string | Uint8Array): Script =>
  async (peer) => {
    await peer.request()
    await peer.write(bytes)
  }

/** The laws of `Egress`. They call servers on 127.0.0.1, so the variant must allow private addresses. */
export const suite: Suite<Egress> = {
  door: "Egress",
  laws: [
    law(
      "sends what the request says, and asks for no encoding",
      Effect.gen(function* () {
        const { origin, peers } = yield* serve(responds(answer("ok")))
        yield* fetch(`${origin}/a/b?c=d%2Fe`, {
          method: "POST",
          headers: { "content-type": "text/plain" },
          bearer: Redacted.make("secret"),
          body: Buffer.from("hello")
        })
        const received = peers[0]?.received.toLowerCase() ?? ""
        assert.match(received, /^post \/a\/b\?c=d%2fe http\/1\.1\r\n/)
        for (const line of ["authorization: bearer secret", "accept-encoding: identity", "content-length: 5"]) {
          assert.ok(received.includes(`${line}\r\n`), `The request has no header "${line}"`)
        }
        assert.match(received, /\r\n\r\nhello$/)
      })
    ),

    law(
      "returns the status, folded headers, and the bytes as they came",
      Effect.gen(function* () {
        const packed = gzipSync("hello")
        const headers = ["Content-Length", String(packed.length), "X-A", "1", "x-a", "2", "content-encoding", "gzip"]
        const { origin } = yield* serve(responds(Buffer.concat([Buffer.from(head(503, headers)), packed])))
        const response = yield* fetch(origin)
        assert.strictEqual(response.status, 503)
        assert.strictEqual(response.headers["x-a"], "1, 2")
        assert.deepStrictEqual([...response.body], [...packed])
      })
    ),

    law(
      "follows no redirect",
      Effect.gen(function* () {
        const target = yield* serve(responds(answer("secret")))
        const { origin } = yield* serve(responds(head(302, ["location", target.origin, "content-length", "0"])))
        const error = yield* Effect.flip(fetch(origin))
        assert.deepStrictEqual([error.reason, error.status], ["redirect", 302])
        assert.strictEqual(target.peers.length, 0)
      })
    ),

    law(
      "accepts `maxBytes` bytes and no more, whether the response declares its length or not",
      Effect.gen(function* () {
        const whole = yield* serve(responds(answer("x".repeat(1_024))))
        assert.strictEqual((yield* fetch(whole.origin)).body.length, 1_024)
        const declared = yield* serve(responds(answer("x".repeat(1_025))))
        const endless = yield* serve(async (peer) => {
          await peer.request()
          await peer.write(head(200, []))
          for (let i = 0; i < 1_000; i++) await peer.write("x".repeat(1_024))
        })
        for (const { origin } of [declared, endless]) assert.strictEqual(yield* reason(origin), "too_large")
      })
    ),

    law(
      "has one deadline for the whole exchange, also when bytes keep dripping",
      Effect.gen(function* () {
        const silent = yield* serve(() => {})
        const dripping = yield* serve(async (peer) => {
          await peer.request()
          await peer.write(head(200, ["content-length", "1000"]))
          for (;;) {
            await peer.write("x")
            await new Promise((later) => setTimeout(later, 20))
          }
        })
        for (const { origin } of [silent, dripping]) {
          assert.strictEqual(yield* reason(origin, { withinMs: 150 }), "timeout")
        }
      })
    ),

    law(
      "distinguishes an address that cannot be reached from a server that does not speak HTTP",
      Effect.gen(function* () {
        const nobody = yield* refusing
        const cut = yield* serve(async (peer) => {
          await peer.request()
          await peer.write(head(200, ["content-length", "10"]))
          peer.reset()
        })
        const noise = yield* serve(responds("SSH-2.0-OpenSSH\r\n\r\n"))
        assert.strictEqual(yield* reason(nobody), "unreachable")
        assert.strictEqual(yield* reason(`http://${"x".repeat(64)}.invalid`), "unreachable")
        assert.strictEqual(yield* reason(cut.origin), "unreachable")
        assert.strictEqual(yield* reason(noise.origin), "malformed")
      })
    ),

    law(
      "accepts only http and https URLs, without user, password and fragment",
      Effect.forEach(invalidUrls, (url) =>
        Effect.map(reason(url), (found) => assert.strictEqual(found, "invalid_url", `"${url}" is ${found}`))
      )
    ),

    law(
      "refuses metadata and link-local addresses in every spelling, before anything is sent",
      Effect.forEach(refusedHosts, (host) =>
        Effect.map(reason(`http://${host}/latest/meta-data`, { withinMs: 2_000 }), (found) =>
          assert.strictEqual(found, "refused_address", `${host} is ${found}`)
        )
      )
    )
  ]
}
