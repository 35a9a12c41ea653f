import { assert, describe, layer } from "@effect/vitest"
import { Context, Duration, Effect, Layer } from "effect"
import { eventually } from "../Eventually.ts"
import * as RawConnection from "../RawConnection.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as ScriptedServer from "../upstream/ScriptedServer.ts"
import { call } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

/** A gateway before two services: `early` answers with 413 before it has read anything, `late` reads and says nothing. */
class Site extends Context.Service<
  Site,
  { readonly gateway: RunningGateway.RunningGateway; readonly key: { readonly raw: string } }
>()("test/e2e/Uploads/Site") {
  static readonly layer = Layer.effect(
    Site,
    Effect.gen(function* () {
      const early = yield* ScriptedServer.serve(async (peer) => {
        peer.stopReading()
        await peer.write(`${ScriptedServer.head(413, ["content-length", "8", "connection", "close"])}too much`)
      })
      const late = yield* ScriptedServer.serve(() => {})
      const deployment = yield* Deployment.make({
        environment: { UPSTREAM_BASE_URL: "http://127.0.0.1:9", GATEWAY_DRAIN_SECONDS: "30" }
      })
      const gateway = yield* deployment.start()
      const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      for (const [name, { origin }, megabytes] of [
        ["early", early, 50],
        ["late", late, 1]
      ] as const) {
        const settings = { upstream_base_url: origin, credential: "s", cost_mode: "none", timeout_ms: 30_000 }
        yield* Effect.promise(() =>
          gateway.operate("POST", "/services", { name, ...settings, max_body_bytes: megabytes * mebibyte })
        )
      }
      yield* eventually(call(gateway, "/services/early", key.raw, { body: {} }), ({ status }) => status === 413)
      return Site.of({ gateway, key })
    })
  )
}

const mebibyte = 1_048_576
const chunk = ScriptedServer.chunk(Buffer.alloc(65_536, 97))

const upload = Effect.fnUntraced(function* (service: string) {
  const { gateway, key } = yield* Site
  const connection = yield* RawConnection.open(gateway.proxy)
  const headers = {
    authorization: `Bearer ${key.raw}`,
    "content-type": "application/octet-stream",
    "transfer-encoding": "chunked"
  }
  connection.write(RawConnection.request(`POST /services/${service}/f`, headers, ""))
  return connection
})

describe.skipIf(!Deployment.available)("an upload that is answered before all of it has come", () => {
  layer(Site.layer, { excludeTestServices: true })((it) => {
    it.effect.each([
      ["by the service", "early", /too much$/],
      ["by the gateway, because it is too large", "late", /request_body_too_large.*\}$/]
    ] as const)("%s: its client can send the rest, and then the next request", ([_, service, answer]) =>
      Effect.gen(function* () {
        const { key } = yield* Site
        const connection = yield* upload(service)
        for (let sent = 0; sent < 20 * mebibyte; sent += 65_536) connection.write(chunk)
        connection.write(ScriptedServer.chunk(""))
        connection.write(RawConnection.request("GET /no/such/route", { authorization: `Bearer ${key.raw}` }))
        const received = yield* connection.until(/unsupported_route/)
        assert.match(received.slice(0, received.lastIndexOf("HTTP/1.1 ")), answer)
        assert.match(received, /^HTTP\/1\.1 413 /)
      }).pipe(Effect.scoped, Effect.timeout("15 seconds"))
    )

    it.effect("and stops coming, or goes on for ever, does not hold the exit", () =>
      Effect.gen(function* () {
        const { gateway } = yield* Site
        for (const service of ["early", "late"]) {
          const stalled = yield* upload(service)
          for (let sent = 0; sent <= mebibyte; sent += 65_536) stalled.write(chunk)
          yield* stalled.until(/^HTTP\/1\.1 413 /)
          const endless = yield* upload(service)
          yield* Effect.forkScoped(
            Effect.forever(
              Effect.delay(
                Effect.sync(() => endless.write(chunk)),
                "5 millis"
              )
            )
          )
          yield* endless.until(/^HTTP\/1\.1 413 /)
        }
        const [took, code] = yield* Effect.timed(
          Effect.promise(() => {
            gateway.signal("SIGTERM")
            return gateway.exited
          })
        )
        assert.strictEqual(code, 0)
        assert.isBelow(Duration.toSeconds(took), 10)
      }).pipe(Effect.scoped)
    )
  })
})
