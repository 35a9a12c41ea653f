import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as Proxy from "./Proxy.ts"
import * as Upstream from "./ScriptedUpstream.ts"

const claims = ["set-cookie", "access-control-allow-origin", "access-control-allow-credentials"]

const answering = (location: string) =>
  Upstream.answers(
    307,
    ["Location", location, "Content-Location", location, ...claims.flatMap((name) => [name, "claimed=*"])],
    "{}"
  )

layer(Proxy.database)("ProxyApp, headers of an upstream's answer", (it) => {
  const routes = [
    { route: "canonical", target: Proxy.chat, origin: "https://upstream.test", prefix: "" },
    {
      route: "compat",
      target: "/providers/compat/v1/chat/completions",
      origin: "https://compat.test",
      prefix: "/providers/compat"
    },
    { route: "service", target: "/services/words/jobs?a", origin: "https://words.test", prefix: "/services/words" },
    { route: "service's own", target: "/services/words", origin: "https://words.test", prefix: "/services/words" }
  ]
  const configured = Proxy.registerService("words", { allowed_methods: ["POST"] })

  it.effect.each([
    [204, undefined],
    [304, "5"]
  ] as const)("an answer of %i has this content-length of the upstream's 5: %s", ([status, length]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.answers(status, ["content-length", "5", "x-own", "1"]) })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
      assert.deepStrictEqual([wire.status, wire.header("content-length"), wire.header("x-own")], [status, length, "1"])
    })
  )

  for (const { origin, prefix, route, target } of routes) {
    it.effect(`a ${route} route sets no cookies, allows no origins, and shows no address of the upstream`, () =>
      Effect.gen(function* () {
        const ask = Effect.fnUntraced(function* (location: string) {
          const gateway = yield* Proxy.make({ configured, upstream: answering(location) })
          const key = yield* Proxy.issueKey()
          const wire = yield* gateway.ask({ target, headers: key.headers, body: { model: "m", messages: [] } })
          assert.strictEqual(wire.status, 307, wire.text)
          for (const name of claims) assert.isUndefined(wire.header(name))
          assert.strictEqual(wire.header("content-location"), wire.header("location"))
          return wire.header("location")
        })
        const moved = `${prefix}/v1/jobs/?b=%2F#c`
        assert.strictEqual(yield* ask(`${origin}/v1/jobs/?b=%2F#c`), moved)
        assert.strictEqual(yield* ask(`${origin.replace("https", "http")}/v1/jobs/?b=%2F#c`), moved)
        assert.strictEqual(yield* ask("/v1/jobs/?b=%2F#c"), moved)
        for (const elsewhere of ["https://files.example/a?sig=1", "jobs/7", `${origin}.evil.example/x`]) {
          assert.strictEqual(yield* ask(elsewhere), elsewhere)
        }
      })
    )
  }

  it.effect("an answer that is read whole for a list of objects is shown by the same rules", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstream: Upstream.answers(
          200,
          ["content-type", "application/json", ...claims.flatMap((name) => [name, "claimed=*"])],
          '{"data":[]}'
        )
      })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/messages/batches", headers: key.headers })
      assert.strictEqual(wire.status, 200, wire.text)
      for (const name of claims) assert.isUndefined(wire.header(name))
    })
  )

  it.effect("the wildcard sets the upstream's cookies once its UI is exposed, and never allows origins", () =>
    Effect.gen(function* () {
      const ask = Effect.fnUntraced(function* (ui_exposure: "disabled" | "explicitly_exposed") {
        const gateway = yield* Proxy.make({
          configured: Proxy.openWildcard({ ui_exposure, allowed_paths: ["/*"], allowed_methods: ["GET"] }),
          upstream: answering("https://upstream.test/v1/x")
        })
        const key = yield* Proxy.issueKey()
        const wire = yield* gateway.ask({ method: "GET", target: "/v1/x", headers: key.headers })
        assert.strictEqual(wire.status, 307, wire.text)
        assert.isUndefined(wire.header("access-control-allow-origin"))
        return wire.header("set-cookie")
      })
      assert.isUndefined(yield* ask("disabled"))
      assert.strictEqual(yield* ask("explicitly_exposed"), "claimed=*")
    })
  )
})
