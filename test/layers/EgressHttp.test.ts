import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Redacted } from "effect"
import * as EgressHttp from "../../layers/EgressHttp.ts"
import type { AddressPolicy } from "../../layers/http/AddressPolicy.ts"
import * as UpstreamHttp from "../../layers/UpstreamHttp.ts"
import { Egress, type EgressRequest } from "../../src/services/Egress.ts"
import { failure } from "../upstream/Exchanges.ts"
import { answer, head, refusing, type Script, serve } from "../upstream/ScriptedServer.ts"

const allow: AddressPolicy = { privateAddresses: "allow", trustedOrigins: [] }
const refuse: AddressPolicy = { privateAddresses: "refuse", trustedOrigins: [] }

const fetch = (url: string, options: Partial<EgressRequest> = {}, addresses = allow) =>
  Effect.flatMap(Egress, (egress) =>
    egress.fetch({ method: "GET", url, withinMs: 5_000, maxBytes: 1_024, ...options })
  ).pipe(Effect.provide(EgressHttp.layer(addresses)))

const reason = (...request: Parameters<typeof fetch>) =>
  Effect.map(Effect.flip(fetch(...request)), (error) => error.reason)

/** Says this, once it was asked. */
const says =
  (bytes: string | Uint8Array): Script =>
  async (peer) => {
    await peer.request()
    await peer.write(bytes)
  }

describe("Egress", () => {
  it.live("asks for what the request says, and for no encoding", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(says(answer("ok")))
      yield* fetch(`${origin}/a/b?c=d%2Fe`, {
        method: "POST",
        headers: { "content-type": "text/plain" },
        bearer: Redacted.make("secret"),
        body: Buffer.from("hello")
      })
      const received = peers[0]?.received.toLowerCase() ?? ""
      assert.isTrue(received.startsWith("post /a/b?c=d%2fe http/1.1\r\n"))
      for (const line of ["authorization: bearer secret", "accept-encoding: identity", "content-length: 5"]) {
        assert.include(received, `${line}\r\n`)
      }
      assert.isTrue(received.endsWith("\r\n\r\nhello"))
    })
  )

  it.live("answers status, folded headers and bytes as they came", () =>
    Effect.gen(function* () {
      const packed = gzipSync("hello")
      const headers = ["Content-Length", String(packed.length), "X-A", "1", "x-a", "2", "content-encoding", "gzip"]
      const { origin } = yield* serve(says(Buffer.concat([Buffer.from(head(503, headers)), packed])))
      const response = yield* fetch(origin)
      assert.strictEqual(response.status, 503)
      assert.strictEqual(response.headers["x-a"], "1, 2")
      assert.deepStrictEqual(Buffer.from(response.body), packed)
    })
  )

  it.live("follows no redirect", () =>
    Effect.gen(function* () {
      const target = yield* serve(says(answer("secret")))
      const { origin } = yield* serve(says(head(302, ["location", target.origin, "content-length", "0"])))
      const error = yield* Effect.flip(fetch(origin))
      assert.deepStrictEqual([error.reason, error.status], ["redirect", 302])
      assert.lengthOf(target.peers, 0)
    })
  )

  it.live("takes so many bytes and no more, declared or not", () =>
    Effect.gen(function* () {
      const whole = yield* serve(says(answer("x".repeat(1_024))))
      assert.lengthOf((yield* fetch(whole.origin)).body, 1_024)
      const declared = yield* serve(says(answer("x".repeat(1_025))))
      const endless = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(head(200, []))
        for (let i = 0; i < 1_000; i++) await peer.write("x".repeat(1_024))
      })
      for (const { origin } of [declared, endless]) assert.strictEqual(yield* reason(origin), "too_large")
    })
  )

  it.live("has one deadline for everything, also when bytes keep dripping", () =>
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
        const [took, why] = yield* Effect.timed(reason(origin, { withinMs: 150 }))
        assert.strictEqual(why, "timeout")
        assert.isBelow(Duration.toMillis(took), 1_500)
      }
    })
  )

  it.live("tells apart what cannot be reached and what is not HTTP", () =>
    Effect.gen(function* () {
      const nobody = yield* refusing
      const cut = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(head(200, ["content-length", "10"]))
        peer.reset()
      })
      const noise = yield* serve(says("SSH-2.0-OpenSSH\r\n\r\n"))
      assert.strictEqual(yield* reason(nobody), "unreachable")
      assert.strictEqual(yield* reason(`http://${"x".repeat(64)}.invalid`), "unreachable")
      assert.strictEqual(yield* reason(cut.origin), "unreachable")
      assert.strictEqual(yield* reason(noise.origin), "malformed")
    })
  )

  it.live("takes http and https URLs only, without user, password and fragment", () =>
    Effect.gen(function* () {
      for (const url of [
        "",
        "/path",
        "ftp://host/",
        "file:///etc/passwd",
        "http://",
        "http://user@127.0.0.1/",
        "http://:pass@127.0.0.1/",
        "http://127.0.0.1/#part"
      ]) {
        assert.strictEqual(yield* reason(url), "invalid_url", url)
      }
    })
  )

  it.live("refuses metadata and link-local addresses in every spelling, before anything is sent", () =>
    Effect.gen(function* () {
      for (const host of [
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
      ]) {
        assert.strictEqual(
          yield* reason(`http://${host}/latest/meta-data`, { withinMs: 2_000 }),
          "refused_address",
          host
        )
      }
    })
  )

  it.live("where private addresses are refused, no spelling and no name leads to them", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(says(answer("ok")))
      const { port } = new URL(origin)
      for (const host of [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "LOCALHOST"
      ]) {
        const error = yield* Effect.flip(fetch(`http://${host}:${port}/`, {}, refuse))
        assert.strictEqual(error.reason, "refused_address", host)
        assert.match(error.message, /The gateway does not call the address .* \(loopback\)/)
      }
      assert.lengthOf(peers, 0)
      const trusting = { ...refuse, trustedOrigins: [`http://localhost:${port}`] }
      assert.strictEqual((yield* fetch(`http://localhost:${port}/`, {}, trusting)).status, 200)
      assert.strictEqual(yield* reason(origin, {}, trusting), "refused_address")
    })
  )

  it.live("proxied traffic is held to the same rule", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(says(answer("ok")))
      const { port } = new URL(origin)
      const through = (addresses: AddressPolicy) => UpstreamHttp.layerWith({ addressPolicy: addresses })
      for (const target of [origin, `http://localhost:${port}`, `https://localhost:${port}`]) {
        const refused = failure(target).pipe(Effect.provide(through(refuse)))
        assert.deepStrictEqual(yield* refused, ["connect", "refused"])
      }
      const metadata = failure("http://169.254.169.254").pipe(Effect.provide(through(allow)))
      assert.deepStrictEqual(yield* metadata, ["connect", "refused"])
      assert.lengthOf(peers, 0)
    })
  )
})
