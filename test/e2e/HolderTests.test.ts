import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as Deployment from "./Deployment.ts"

const sameOrigin = { "sec-fetch-site": "same-origin", "content-type": "application/json" }

type Page = Readonly<Record<string, string>>

const post = (url: string, headers: Page, body: object) =>
  Effect.promise(async () => {
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
    const [cookie = ""] = (response.headers.get("set-cookie") ?? "").split(";", 1)
    return { status: response.status, text: await response.text(), cookie }
  })

const signIn = Effect.fnUntraced(function* (origin: string, token: string) {
  const { cookie, text } = yield* post(`${origin}/admin-ui/session`, sameOrigin, { token })
  const page: Page = { ...sameOrigin, cookie, "x-svc-csrf": /"csrf":\{[^}]*"value":"(\w+)"/.exec(text)?.[1] ?? "" }
  return page
})

const test = (origin: string, page: Page, model = "any", protocol = "chat") =>
  Effect.map(post(`${origin}/admin-ui/v1/me/test`, page, { protocol, model, send: true }), ({ status, text }) => {
    assert.strictEqual(status, 200, text)
    return text
  })

/** Origins of environment variables stay reachable, also at loopback addresses. */
const verbose = { LOG_LEVEL: "debug", GATEWAY_EGRESS_PRIVATE_ADDRESSES: "refuse" }

describe("A holder's test of a key", () => {
  it.live("is sent to the proxy listener of the same program, at both listeners, and no log has the key", () =>
    Effect.gen(function* () {
      const gateway = yield* GatewayOnPostgres.start({
        example: true,
        environment: { ...verbose, SVC_PORTAL_BIND_ADDR: "127.0.0.1:0" }
      })
      const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      for (const origin of [gateway.control, gateway.portal]) {
        const page = yield* signIn(origin, key.raw)
        for (const protocol of ["chat", "responses", "messages"]) {
          const text = yield* test(origin, page, "any", protocol)
          assert.include(text, '"outcome":"works"')
          assert.notInclude(text, key.raw)
        }
        if (origin === gateway.control) continue
        assert.include(yield* test(origin, page, "simulate-429"), '"provider_message":"Simulated 429."')
      }
      // half of an answer comes, and no more
      const page = yield* signIn(gateway.control, key.raw)
      assert.include(yield* test(gateway.control, page, "simulate-stall"), '"outcome":"timeout"')
      const metrics = yield* Effect.promise(() =>
        fetch(`${gateway.control}/admin-ui/metrics`).then((found) => found.text())
      )
      assert.include(metrics, "gateway")
      assert.notInclude(metrics, key.raw.slice(0, 40))
      assert.isAbove(gateway.output().length, 1_000)
      assert.notInclude(gateway.output(), key.raw.slice(0, 40))
    })
  )

  describe.skipIf(!Deployment.available)("in processes of their own", () => {
    const started = Effect.fnUntraced(function* (environment: (proxy: string) => Record<string, string>) {
      const deployment = yield* Deployment.make({ environment: verbose })
      const gateway = yield* deployment.start({ role: "gateway" })
      const control = yield* deployment.start({ role: "control", environment: environment(gateway.proxy) })
      const key = yield* Effect.promise(() => RunningGateway.createKey(control))
      const page = yield* signIn(control.control, key.raw)
      return { control, gateway, key, page, text: (model?: string) => test(control.control, page, model) }
    })

    it.live("is sent to the origin that the environment names", () =>
      Effect.gen(function* () {
        const { control, gateway, key, text } = yield* started((proxy) => ({ GATEWAY_PUBLIC_ORIGIN: proxy }))
        assert.include(yield* text(), '"outcome":"works"')
        for (const { output } of [control, gateway]) assert.notInclude(output(), key.raw.slice(0, 40))
        gateway.signal("SIGKILL")
        yield* Effect.promise(() => gateway.exited)
        assert.include(yield* text(), '"outcome":"unreachable"')
      })
    )

    it.live("is not sent without this origin", () =>
      Effect.gen(function* () {
        const { text } = yield* started(() => ({}))
        assert.include(yield* text(), "does not know the address of the gateway")
      })
    )
  })
})
