import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import * as EgressHttp from "../../../layers/EgressHttp.ts"
import type { AddressPolicy } from "../../../layers/http/AddressPolicy.ts"
import { trackServer } from "../../../layers/http/OwnListeners.ts"
import * as OwnGatewayHttp from "../../../layers/roles/OwnGateway.ts"
import { OwnGateway } from "../../../src/control/holder/OwnGateway.ts"
import { type BoundAddress, GatewayAddress } from "../../../src/process/GatewayAddress.ts"
import { Egress } from "../../../src/services/Egress.ts"
import { portOf } from "../../upstream/SimulatorServer.ts"

const refuse: AddressPolicy = { privateAddresses: "refuse", trustedOrigins: [] }
const allow: AddressPolicy = { privateAddresses: "allow", trustedOrigins: [] }

/** A listener that counts its requests. One that is `own` is a listener of this process. */
const listener = (own: boolean) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const served = { requests: 0, port: 0 }
      const plain = createServer((_, response) => {
        served.requests++
        response.end("ok")
      })
      const server = own ? trackServer(plain) : plain
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      served.port = portOf(server.address())
      return { served, server }
    }),
    ({ server }) =>
      Effect.promise(async () => {
        server.closeAllConnections()
        await new Promise((closed) => server.close(closed))
      })
  ).pipe(Effect.map(({ served }) => served))

const request = { method: "POST", path: "/v1/chat/completions", withinMs: 5_000, maxBytes: 1_024 } as const

const send = (listening: Layer.Layer<GatewayAddress> | Layer.Layer<never>, configured: Option.Option<string>) =>
  Effect.gen(function* () {
    const found = yield* yield* OwnGateway
    assert(Option.isSome(found))
    return yield* found.value(request)
  }).pipe(Effect.provide(OwnGatewayHttp.layer(configured).pipe(Layer.provide(listening))))

const at = (port: number): Layer.Layer<GatewayAddress> =>
  GatewayAddress.listening({ host: "localhost", ip: "127.0.0.1", port })

const throughDoor = (url: string, policy: AddressPolicy) =>
  Effect.flatMap(Egress, (egress) => egress.fetch({ method: "GET", url, withinMs: 5_000, maxBytes: 1_024 })).pipe(
    Effect.provide(EgressHttp.layer(policy))
  )

describe("The way to the own gateway", () => {
  it.live("leads to the proxy listener of this process, and opens it to nothing else", () =>
    Effect.gen(function* () {
      const proxy = yield* listener(true)
      const url = `http://127.0.0.1:${proxy.port}/`
      assert.strictEqual((yield* send(at(proxy.port), Option.none())).status, 200)
      for (const policy of [allow, refuse]) {
        assert.strictEqual((yield* Effect.flip(throughDoor(url, policy))).reason, "refused_address")
      }
      assert.strictEqual((yield* send(at(proxy.port), Option.none())).status, 200)
      assert.strictEqual(proxy.requests, 2)
    })
  )

  it.live(
    "leads from an origin of the environment to another process, also a private one, and never to a listener of this one",
    () =>
      Effect.gen(function* () {
        const control = yield* listener(true)
        const other = yield* listener(false)
        const origin = (port: number) => Option.some(`http://127.0.0.1:${port}`)
        assert.strictEqual((yield* send(Layer.empty, origin(other.port))).status, 200)
        for (const host of ["127.0.0.1", "localhost"]) {
          const refused = yield* Effect.flip(send(Layer.empty, Option.some(`http://${host}:${control.port}`)))
          assert.strictEqual(refused.reason, "refused_address")
          assert.include(refused.message, "a listener of this process")
        }
        assert.deepStrictEqual([control.requests, other.requests], [0, 1])
        const metadata = yield* Effect.flip(send(Layer.empty, Option.some("http://169.254.169.254")))
        assert.strictEqual(metadata.reason, "refused_address")
        // the listener of this process comes first
        const proxy = yield* listener(true)
        yield* send(at(proxy.port), origin(other.port))
        assert.deepStrictEqual([proxy.requests, other.requests], [1, 1])
      })
  )

  it.effect.each([
    ["0.0.0.0", "http://127.0.0.1:8080"],
    ["::", "http://[::1]:8080"],
    ["10.0.0.5", "http://10.0.0.5:8080"],
    ["fd00::5", "http://[fd00::5]:8080"]
  ] as const)("calls a listener at %s by %s", ([ip, origin]) =>
    Effect.sync(() => {
      const bound: BoundAddress = { host: "gateway.internal", ip, port: 8080 }
      const found = OwnGatewayHttp.destinationOf(Option.some(bound), Option.some("https://elsewhere.example"))
      assert.deepStrictEqual(Option.getOrUndefined(found), {
        origin,
        addressPolicy: { privateAddresses: "allow", trustedOrigins: [origin] }
      })
    })
  )

  it.effect("is not known without either", () =>
    Effect.sync(() => assert.isTrue(Option.isNone(OwnGatewayHttp.destinationOf(Option.none(), Option.none()))))
  )
})
