import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../src/services/Database.ts"
import * as Proxy from "./Proxy.ts"
import * as Upstream from "./ScriptedUpstream.ts"

const item = (id: string) => ({ id, object: "model", owned_by: "them" })
const list = { object: "list", data: ["gpt-5", "gpt-5-mini", "claude-opus-4"].map(item) }
const page = { data: list.data, has_more: false, first_id: "gpt-5", last_id: "claude-opus-4" }
const anthropic = ["anthropic-version", "2023-06-01"]

const asked = Effect.fnUntraced(function* (
  policy: Readonly<Record<string, unknown>>,
  target = "/v1/models",
  headers: ReadonlyArray<string> = [],
  upstream = Upstream.json(list)
) {
  const gateway = yield* Proxy.make({ upstream })
  const key = yield* Proxy.issueKey(policy)
  const wire = yield* gateway.ask({ method: "GET", target, headers: [...key.headers, ...headers] })
  return {
    status: wire.status,
    text: wire.text,
    json: JSON.parse(wire.text),
    sent: gateway.sent.map((one) => one.target)
  }
})

layer(Proxy.database)("The list of models", (it) => {
  it.effect("comes as it is for a key that may use them all", () =>
    Effect.gen(function* () {
      const { status, text } = yield* asked({})
      assert.deepStrictEqual([status, text], [200, JSON.stringify(list)])
    })
  )

  it.effect("has what the key may use, in the forms of both families", () =>
    Effect.gen(function* () {
      const policy = { allowed_models: ["gpt-5*", "other"] }
      assert.deepStrictEqual((yield* asked(policy)).json, { ...list, data: ["gpt-5", "gpt-5-mini"].map(item) })
      const { json } = yield* asked(policy, "/v1/models?limit=9", anthropic, Upstream.json(page))
      assert.deepStrictEqual(json, {
        data: ["gpt-5", "gpt-5-mini"].map(item),
        has_more: false,
        first_id: "gpt-5",
        last_id: "gpt-5-mini"
      })
      assert.deepStrictEqual((yield* asked({ allowed_models: [] })).json.data, [])
    })
  )

  it.effect("leaves out models that a layer denies", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const gateway = yield* Proxy.make({
        upstream: Upstream.json(list),
        configured: sql`INSERT INTO policy_layers (layer_kind, scope_id, policy) VALUES ('model', 'gpt-5', '{"deny":true}')`
      })
      const key = yield* Proxy.issueKey()
      const ask = (target: string) => gateway.ask({ method: "GET", target, headers: key.headers })
      assert.deepStrictEqual(
        JSON.parse((yield* ask("/v1/models")).text).data,
        ["gpt-5-mini", "claude-opus-4"].map(item)
      )
      assert.deepStrictEqual(
        [(yield* ask("/v1/models/gpt-5")).status, (yield* ask("/v1/models/gpt-5-mini")).status],
        [404, 200]
      )
    })
  )

  it.effect(
    "comes as it is where operators put its route into direct mode, also for a key that may use some of them",
    () =>
      Effect.gen(function* () {
        const gateway = yield* Proxy.make({
          upstream: Upstream.json(list),
          configured: Proxy.configureRoute("models", { mode: "direct_upstream_passthrough" })
        })
        const key = yield* Proxy.issueKey({ allowed_models: ["gpt-5"] })
        const { text } = yield* gateway.ask({ method: "GET", target: "/v1/models", headers: key.headers })
        assert.strictEqual(text, JSON.stringify(list))
      })
  )

  it.effect("passes what is no list, and an upstream's refusal", () =>
    Effect.gen(function* () {
      const policy = { allowed_models: ["gpt-5"] }
      const refusal = { error: { message: "no", code: "invalid_api_key" } }
      assert.deepStrictEqual((yield* asked(policy, undefined, [], Upstream.json(refusal, 401))).json, refusal)
      assert.deepStrictEqual((yield* asked(policy, undefined, [], Upstream.json({ models: [] }))).json, { models: [] })
    })
  )
})

layer(Proxy.database)("A single model", (it) => {
  it.effect("is asked for at the upstream where the key may use it", () =>
    Effect.gen(function* () {
      const policy = { allowed_models: ["gpt-5*", "openai/*"] }
      for (const target of ["/v1/models/gpt-5-mini", "/v1/models/openai/gpt-5", "/v1/models/openai/gpt-5?x=1"]) {
        const { json, sent, status } = yield* asked(policy, target, [], Upstream.json(item("m")))
        assert.deepStrictEqual([status, json, sent], [200, item("m"), [target]])
      }
      assert.strictEqual((yield* asked({}, "/v1/models/anything")).status, 200)
    })
  )

  it.effect("is else a 404 in the form of the family, and the upstream is not asked", () =>
    Effect.gen(function* () {
      const policy = { allowed_models: ["gpt-5"] }
      const a = yield* asked(policy, "/v1/models/claude-opus-4")
      assert.deepStrictEqual(
        [a.status, a.sent, a.json.error.code, a.json.error.param],
        [404, [], "object_not_found", "model"]
      )
      assert.strictEqual(a.json.error.message, 'There is no model "claude-opus-4" that this key may use.')
      const b = yield* asked(policy, "/v1/models/claude-opus-4", anthropic)
      assert.deepStrictEqual([b.status, b.json.type, b.json.error.type], [404, "error", "not_found_error"])
    })
  )

  it.effect("is under the route of the list: its switch and the key's routes", () =>
    Effect.gen(function* () {
      const { status } = yield* asked({ allowed_routes: ["/v1/messages"] }, "/v1/models/gpt-5")
      assert.strictEqual(status, 403)
    })
  )
})

layer(Proxy.database)("A client that is signed in with its vendor", (it) => {
  it.effect.each([
    ["the key as x-api-key", (raw: string) => ["authorization", "Bearer sk-ant-oat01-theirs", "x-api-key", raw]],
    ["the key as bearer", (raw: string) => ["x-api-key", "sk-ant-api03-theirs", "authorization", `Bearer ${raw}`]]
  ] as const)("is let in by %s, and its own credential goes nowhere", ([, headersOf]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.json({}) })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({
        target: Proxy.messages,
        headers: [...headersOf(key.raw)],
        body: { model: "m" }
      })
      assert.strictEqual(wire.status, 200, wire.text)
      assert.notInclude(JSON.stringify(gateway.sent), "theirs")
      assert.notInclude(JSON.stringify(gateway.sent), key.raw)
    })
  )
})
