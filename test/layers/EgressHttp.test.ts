import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as EgressHttp from "../../layers/EgressHttp.ts"
import type { AddressPolicy } from "../../layers/http/AddressPolicy.ts"
import * as UpstreamHttp from "../../layers/UpstreamHttp.ts"
import { Egress } from "../../src/services/Egress.ts"
import { failure } from "../upstream/Exchanges.ts"
import { answer, type Script, serve } from "../upstream/ScriptedServer.ts"

const allow: AddressPolicy = { privateAddresses: "allow", trustedOrigins: [] }
const refuse: AddressPolicy = { privateAddresses: "refuse", trustedOrigins: [] }

const fetch = (url: string, addresses: AddressPolicy) =>
  Effect.flatMap(Egress, (egress) => egress.fetch({ method: "GET", url, withinMs: 5_000, maxBytes: 1_024 })).pipe(
    Effect.provide(EgressHttp.layer(addresses))
  )

/** Says this, once it was asked. */
const says =
  (bytes: string | Uint8Array): Script =>
  async (peer) => {
    await peer.request()
    await peer.write(bytes)
  }

describe("EgressHttp", () => {
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
        const error = yield* Effect.flip(fetch(`http://${host}:${port}/`, refuse))
        assert.strictEqual(error.reason, "refused_address", host)
        assert.match(error.message, /The gateway does not call the address .* \(loopback\)/)
      }
      assert.lengthOf(peers, 0)
      const trusting = { ...refuse, trustedOrigins: [`http://localhost:${port}`] }
      assert.strictEqual((yield* fetch(`http://localhost:${port}/`, trusting)).status, 200)
      assert.strictEqual((yield* Effect.flip(fetch(origin, trusting))).reason, "refused_address")
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
