import { assert, it as check, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { beside, inPath } from "../../src/gateway/model/NamedModels.ts"
import * as Proxy from "./Proxy.ts"

const small = { model: "small" }

layer(Proxy.database)("models beside model", (it) => {
  const ask = Effect.fnUntraced(function* (policy: object, target: string, body: object) {
    const gateway = yield* Proxy.make({ settings: { directCompatPaths: ["/v1/*", "/openai/*", "/v1beta/*"] } })
    const key = yield* Proxy.issueKey({ ...policy })
    const wire = yield* gateway.ask({ target, headers: key.headers, body })
    const error = wire.status === 200 ? undefined : JSON.parse(wire.text).error
    return { status: wire.status, code: error?.code, param: error?.param, sent: gateway.sent.length }
  })
  const denied = (param: string) => ({ status: 403, code: "policy_denied", param, sent: 0 })

  it.effect.each([
    [Proxy.chat, { ...small, fallbacks: ["big"] }, "model"],
    [Proxy.chat, { ...small, fallbacks: [{ model: "big" }] }, "model"],
    [Proxy.chat, { ...small, fallbacks: [{ small: ["big"] }] }, "model"],
    [Proxy.chat, { ...small, models: ["small", "big"] }, "model"],
    [Proxy.chat, { ...small, extra_body: { model: "big" } }, "model"],
    [Proxy.chat, { ...small, extra_body: { fallbacks: ["big"] } }, "model"],
    [Proxy.chat, { ...small, context_window_fallbacks: [{ small: ["big"] }] }, "model"],
    ["/v1/responses", { ...small, tools: [{ type: "image_generation", model: "big" }] }, "model"],
    [Proxy.chat, { ...small, route: "fallback" }, "route"],
    [Proxy.chat, { ...small, user_config: {} }, "user_config"],
    [Proxy.chat, { ...small, api_base: "https://elsewhere.test" }, "api_base"],
    [Proxy.chat, { ...small, extra_body: { api_base: "x" } }, "extra_body.api_base"],
    [Proxy.chat, { ...small, model_id: "big" }, "model_id"],
    [Proxy.chat, { ...small, extra_query: { model: "big" } }, "extra_query"],
    ["/v1/responses", { ...small, prompt: { id: "pmpt_1" } }, "prompt"],
    [Proxy.chat, { ...small, extra_body: "x" }, "extra_body"],
    [Proxy.chat, { ...small, fallbacks: [{ model: "small", api_base: "x" }] }, "fallbacks"],
    [Proxy.chat, { ...small, fallbacks: 7 }, "fallbacks"],
    [Proxy.chat, { messages: [] }, "model"],
    ["/v1/responses", { prompt: { id: "pmpt_1" } }, "prompt"],
    ["/v1/messages/batches", { requests: [{ params: small }, { params: {} }] }, "model"],
    ["/providers/compat/openai/deployments/big/chat/completions", small, "model"],
    ["/providers/compat/v1beta/models/big:generateContent", {}, "model"]
  ] as const)("a key with a list of models: %s %j", ([target, body, param]) =>
    Effect.map(ask({ allowed_models: ["small"] }, target, body), (answer) =>
      assert.deepInclude(answer, { ...denied(param), param: param })
    )
  )

  it.effect.each([
    [{ ...small, fallbacks: ["small"], num_retries: 2, metadata: { a: "b" } }],
    [{ ...small, models: [], route: null }],
    [{ ...small, extra_body: { top_k: 3 } }]
  ] as const)("lets go what names only models of the list: %j", ([body]) =>
    Effect.map(ask({ allowed_models: ["small"] }, Proxy.chat, body), ({ status }) => assert.strictEqual(status, 200))
  )

  it.effect.each(["?x=/engines/zzz/", "?x=/engines/%zz", "?x=/models/zzz:generate"])(
    "finds no model in a query: %s",
    (query) =>
      Effect.map(
        ask({ allowed_models: ["small"] }, `/providers/compat/v1/chat/completions${query}`, small),
        ({ status }) => assert.strictEqual(status, 200)
      )
  )

  it.effect("asks a key without a list for nothing of it", () =>
    Effect.map(ask({}, Proxy.chat, { ...small, route: "fallback", fallbacks: ["big"], api_base: "x" }), ({ status }) =>
      assert.strictEqual(status, 200)
    )
  )

  it.effect.each([
    [{ ...small, web_search_options: {} }],
    [{ ...small, mcp_servers: [{ type: "url" }] }],
    [{ ...small, plugins: [{ id: "web" }] }],
    [{ ...small, extra_body: { tools: [{}] } }]
  ] as const)("a hosted tool is a tool: %j", ([body]) =>
    Effect.gen(function* () {
      for (const policy of [{ allow_tools: false }, { max_tool_call_count: 0 }, { max_tool_schema_bytes: 1 }]) {
        assert.deepInclude(yield* ask(policy, Proxy.chat, body), { status: 403, code: "policy_denied", sent: 0 })
      }
      assert.strictEqual((yield* ask({}, Proxy.chat, body)).status, 200)
    })
  )
})

describe("NamedModels", () => {
  check("finds each model of each form", () => {
    const request = { fallbacks: ["a", { model: "b" }, { x: ["c", { model: "d" }] }], models: ["e"] }
    assert.deepStrictEqual(beside(request), { models: ["a", "b", "c", "d", "e"], unjudged: undefined })
  })

  check.each([
    ["/openai/deployments/m/chat/completions?a=b", "m"],
    ["/v1/engines/m%2Dx/embeddings", "m-x"],
    ["/v1beta/models/gemini:generateContent", "gemini"],
    ["/v1/projects/p/models/a/b:predict", "a/b"],
    ["/v1/models/m", undefined],
    ["/openai/d%65ployments/m/chat/completions", "m"],
    ["/v1beta/models/gemini%3AgenerateContent", "gemini"],
    ["/v1/chat/completions?x=/engines/zzz/", undefined],
    ["/v1/chat/completions?x=/models/zzz:generate", undefined],
    ["/v1/chat/completions?x=/engines/%zz", undefined],
    ["/v1/engines/%zz", undefined],
    ["/v1/chat/completions", undefined]
  ])("of the path %s: %s", (path, model) => {
    assert.strictEqual(inPath(path), model)
  })
})
