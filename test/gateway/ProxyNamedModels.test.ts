import { assert, it as check, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { hasCommaInPath, namedInPath, namedInRequest } from "../../src/policy/facts/NamedModels.ts"
import type { GuardrailPolicyPatch } from "../../src/policy/GuardrailPolicy.ts"
import { Database } from "../../src/services/Database.ts"
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
    ["/v1/responses", { ...small, agent: { name: "big" } }, "agent"],
    ["/providers/compat/v1/conversations", { agent_id: "big" }, "agent_id"],
    [Proxy.chat, { ...small, extra_query: { model: "big" } }, "extra_query"],
    ["/v1/responses", { ...small, prompt: { id: "pmpt_1" } }, "prompt"],
    [Proxy.chat, { ...small, extra_body: "x" }, "extra_body"],
    [Proxy.chat, { ...small, fallbacks: [{ model: "small", api_base: "x" }] }, "fallbacks"],
    [Proxy.chat, { ...small, fallbacks: 7 }, "fallbacks"],
    [Proxy.chat, { messages: [] }, "model"],
    ["/v1/responses", { prompt: { id: "pmpt_1" } }, "prompt"],
    ["/v1/messages/batches", { requests: [{ params: small }, { params: {} }] }, "model"],
    ["/providers/compat/openai/deployments/big/chat/completions", small, "model"],
    ["/providers/compat/v1beta/models/big:generateContent", {}, "model"],
    ["/providers/compat/openai/deployments/small/engines/big/completions", small, "model"],
    ["/providers/compat/v1/models/big/infer", small, "model"],
    ["/providers/compat/v1/rerank", { query: "q" }, "model"],
    ["/providers/compat/v1/moderations", { input: "x" }, "model"]
  ] as const)("a key with a list of models: %s %j", ([target, body, param]) =>
    Effect.map(ask({ allowed_models: ["small"] }, target, body), (answer) =>
      assert.deepInclude(answer, { ...denied(param), param })
    )
  )

  it.effect.each([
    [{ ...small, fallbacks: ["small"], num_retries: 2, metadata: { a: "b" } }],
    [{ ...small, models: [], route: null }],
    [{ ...small, extra_body: { top_k: 3 } }]
  ] as const)("lets go what names only models of the list: %j", ([body]) =>
    Effect.map(ask({ allowed_models: ["small"] }, Proxy.chat, body), ({ status }) => assert.strictEqual(status, 200))
  )

  const listed = "gpt-5-mini,claude-opus-4"
  const deployment = "/providers/compat/openai/deployments"
  const inBody: ReadonlyArray<readonly [target: string, body: object, param: string]> = [
    ...["/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/messages", "/v1/messages/count_tokens"].map(
      (target) => [target, { model: listed }, "model"] as const
    ),
    ["/providers/compat/v1/completions", { model: listed }, "model"],
    ["/v1/messages/batches", { requests: [{ params: { model: listed } }] }, "requests.0.params.model"],
    [Proxy.chat, { model: "gpt-5", models: [listed] }, "models"],
    [Proxy.chat, { model: "gpt-5", fallbacks: [{ model: listed }] }, "fallbacks"],
    [Proxy.chat, { model: "gpt-5", extra_body: { model: listed } }, "extra_body.model"]
  ]
  const inPath = [
    `${deployment}/${listed}/chat/completions`,
    `${deployment}/gpt-5%2Cclaude-opus-4/chat/completions`,
    // LiteLLM reads all that is between `deployments` and `chat` as one name.
    `${deployment}/gpt-5/x,claude-opus-4/chat/completions`,
    "/providers/compat/v1beta/models/gpt-5,b:generateContent"
  ].map((target) => [target, {}, "path"] as const)

  it.effect.each([...inBody, ...inPath])(
    "is sent nothing that names several models at once: %s %j",
    ([target, body, param]) =>
      Effect.gen(function* () {
        for (const policy of [{ allowed_models: ["gpt-5*"] }, { daily_budget_usd: 5 }, {}]) {
          const refused = { status: 400, code: "invalid_request_body", param, sent: 0 }
          assert.deepStrictEqual(yield* ask(policy, target, body), refused)
        }
      })
  )

  it.effect.each([
    [Proxy.chat, { ...small, Fallbacks: ["big"] }, "Fallbacks"],
    ["/v1/responses", { ...small, Prompt: { id: "pmpt_1" } }, "Prompt"],
    ["/providers/compat/v1/completions", { ...small, Api_Base: "https://elsewhere.test" }, "Api_Base"],
    ["/v1/messages/batches", { requests: [], Requests: [{ params: { model: "big" } }] }, "Requests"],
    ["/v1/messages/batches", { requests: [{ params: small, Params: { model: "big" } }] }, "Params"]
  ] as const)(
    "is sent no member that an upstream could take for one that policy reads: %s %j",
    ([target, body, param]) =>
      Effect.map(ask({ allowed_models: ["small"] }, target, body), (answer) =>
        assert.deepStrictEqual(answer, { status: 400, code: "invalid_request_body", param, sent: 0 })
      )
  )

  it.effect("lets a query use the name of a member that selects models", () =>
    Effect.map(ask({ allowed_models: ["small"] }, `${Proxy.chat}?provider=x&Route=y`, small), ({ status }) =>
      assert.strictEqual(status, 200)
    )
  )

  it.effect("is asked about no model whose name has a comma", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey({ allowed_models: ["gpt-5*"] })
      const wire = yield* gateway.ask({ method: "GET", target: `/v1/models/${listed}`, headers: key.headers })
      assert.deepStrictEqual([wire.status, gateway.sent.length], [400, 0])
    })
  )

  it.effect("sends on a text with commas that names no model", () =>
    Effect.map(
      ask({ allowed_models: ["gpt-5*"] }, Proxy.chat, { model: "gpt-5", user: "a,b", metadata: { model: "a,b" } }),
      ({ status }) => assert.strictEqual(status, 200)
    )
  )

  it.effect.each(["?x=/engines/zzz/", "?x=/engines/%zz", "?x=/models/zzz:generate"])(
    "finds no model in a query: %s",
    (query) =>
      Effect.map(
        ask({ allowed_models: ["small"] }, `/providers/compat/v1/chat/completions${query}`, small),
        ({ status }) => assert.strictEqual(status, 200)
      )
  )

  it.effect.each(
    [
      "/v1/files /v1/uploads /v1/uploads/u/complete /v1/vector_stores /v1/vector_stores/v/search /v1/batches/b/cancel".split(
        " "
      ),
      "/v1/fine_tuning/jobs/j/pause /v1/evals/e/runs/r /v1/threads /v1/threads/t/messages /v1/conversations".split(" ")
    ].flat()
  )("lets go what has no model on the compatible upstream: %s", (path) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ settings: { directCompatOwnership: "shared" } })
      const key = yield* Proxy.issueKey({ allowed_models: ["small"], tpm_limit: 100_000, daily_budget_usd: 5 })
      const wire = yield* gateway.ask({ target: `/providers/compat${path}`, headers: key.headers, body: {} })
      assert.strictEqual(wire.status, 200, wire.text)
    })
  )

  const later =
    "/v1/batches /v1/fine_tuning/jobs /v1/fine_tuning/jobs/j/resume /v1/evals /v1/evals/e/runs /v1/videos".split(" ")
  const laterElsewhere =
    "/v1/videos/v/remix /v1/x/messages/batches /v1/threads/runs /v1/threads/t/runs /v1/Batches/ /v1/fine-tunes".split(
      " "
    )

  it.effect.each([...later, ...laterElsewhere])("has nothing done later that no limit would hold: %s", (path) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ settings: { directCompatOwnership: "shared" } })
      const ask = Effect.fnUntraced(function* (policy: object) {
        const key = yield* Proxy.issueKey({ ...policy })
        return yield* gateway.ask({ target: `/providers/compat${path}`, headers: key.headers, body: small })
      })
      for (const [field, limit] of [
        ["allowed_models", ["small"]],
        ["tpm_limit", 100_000],
        ["max_tokens_per_day", 100_000],
        ["daily_budget_usd", 5],
        ["monthly_budget_usd", 5],
        ["max_cost_per_request", 5],
        ["max_output_tokens_per_request", 10],
        ["allow_tools", false]
      ] as const) {
        const wire = yield* ask({ [field]: limit })
        const { code, message } = JSON.parse(wire.text).error
        assert.deepStrictEqual([wire.status, code, gateway.sent.length], [403, "policy_denied", 0], field)
        assert.include(message, `enforce ${field} on`)
      }
      assert.strictEqual((yield* ask({ rpm_limit: 5, allow_streaming: false })).status, 200)
    })
  )

  it.effect("holds such work to what layers share, to the layers of models and to guardrails of answers", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const refused = Effect.fnUntraced(function* (
        configured: Effect.Effect<unknown, unknown, Database>,
        guardrails: GuardrailPolicyPatch = {}
      ) {
        const gateway = yield* Proxy.make({ configured })
        const key = yield* Proxy.issueKey({}, { guardrails })
        const wire = yield* gateway.ask({ target: "/providers/compat/v1/batches", headers: key.headers, body: {} })
        yield* sql`DELETE FROM policy_layers`
        assert.deepStrictEqual([wire.status, gateway.sent.length], [403, 0], wire.text)
        const { denial } = (yield* gateway.records)[0] ?? {}
        return [JSON.parse(wire.text).error.message.split(", because")[0], denial?.check]
      })
      const global = sql`INSERT INTO policy_layers (layer_kind, scope_id, shared) VALUES ('global', NULL, '{"daily_budget_usd":5}')`
      assert.deepStrictEqual(yield* refused(global), [
        "The gateway cannot enforce shared daily_budget_usd of all keys on this path",
        "shared_daily_budget_usd"
      ])
      const model = sql`INSERT INTO policy_layers (layer_kind, scope_id, policy) VALUES ('model', 'm', '{"deny":true}')`
      assert.deepStrictEqual(yield* refused(model), [
        "The gateway cannot enforce model policies on this path",
        "later_work"
      ])
      assert.deepStrictEqual(yield* refused(Effect.void, { mandatory_guardrails: ["pii-redact"] }), [
        "The gateway cannot enforce a guardrail on responses on this path",
        "later_work"
      ])
    })
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
    assert.deepStrictEqual(namedInRequest(request), {
      models: ["a", "b", "c", "d", "e"],
      unjudgedMember: undefined,
      commaMember: undefined
    })
  })

  check.each<[path: string, models: ReadonlyArray<string>]>([
    ["/openai/deployments/m/chat/completions?a=b", ["m"]],
    ["/v1/engines/m%2Dx/embeddings", ["m-x"]],
    ["/v1beta/models/gemini:generateContent", ["gemini"]],
    ["/v1/projects/p/models/a/b:predict", ["a/b"]],
    ["/v1/models/m", ["m"]],
    ["/v1/models/m/infer", ["m"]],
    ["/v1/models/a:b:generateContent", ["a", "a:b"]],
    ["/openai/deployments/a/engines/b/x/models/c:d", ["a", "b", "c"]],
    ["/openai/DEPLOYMENTS/m/x", ["m"]],
    ["/openai/%EF%BD%84eployments/m/x", ["m"]],
    ["/openai/d%65ployments/m/chat/completions", ["m"]],
    ["/v1beta/models/gemini%3AgenerateContent", ["gemini"]],
    ["/v1/chat/completions?x=/engines/zzz/", []],
    ["/v1/chat/completions?x=/models/zzz:generate", []],
    ["/v1/chat/completions?x=/engines/%zz", []],
    ["/v1/chat/completions", []]
  ])("of the path %s: %s", (path, models) => {
    assert.deepStrictEqual(namedInPath(path), { models, unjudgedMember: undefined })
  })

  check.each(["/v1/engines/%zz", "/v1/engines/a%EF%BC%8Fb/x", "/v1/engines/a%EF%BC%85x"])(
    "of the path %s nobody can tell",
    (path) => {
      assert.deepStrictEqual(namedInPath(path), { models: [], unjudgedMember: "path" })
    }
  )

  check.each([
    ["/openai/deployments/a,b/chat/completions", true],
    ["/openai/DEPLOYMENTS/a%2cb/chat/completions", true],
    ["/v1/engines/a/b,c/completions", true],
    ["/v1beta/models/a:x,y", true],
    ["/v1/engines/a%EF%BC%85,b", true],
    ["/v1/engines/a%EF%BC%85b", false],
    ["/v1/engines/a/completions?x=a,b", false],
    ["/v1/files/a,b", false],
    ["/a,b/v1/models/c", false]
  ] as const)("a comma in a model of the path %s: %s", (path, expected) => {
    assert.strictEqual(hasCommaInPath(path), expected)
  })
})
