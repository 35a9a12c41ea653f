import { assert, layer } from "@effect/vitest"
import { Effect, Metric, Option } from "effect"
import { PrometheusMetrics } from "effect/observability"
import type { ErrorCode } from "../../src/gateway/GatewayError.ts"
import { Database } from "../../src/services/Database.ts"
import { eventually } from "../Eventually.ts"
import * as RealTime from "../RealTime.ts"
import * as Proxy from "./Proxy.ts"
import type { ClientRequest } from "./RecordingWire.ts"
import * as Upstream from "./ScriptedUpstream.ts"

layer(Proxy.database)("ProxyApp, direct to the upstream", (it) => {
  it.effect("keeps policy, limits, budgets and credentials of a gateway key, and records no tokens", () =>
    Effect.gen(function* () {
      const usage = { prompt_tokens: 5, completion_tokens: 6 }
      const gateway = yield* Proxy.make({ configured: direct, upstream: Upstream.json({ usage }) })
      const key = yield* Proxy.issueKey({ allowed_models: ["small"], tpm_limit: 1000, daily_budget_usd: 0.03 })
      const ask = (model: string) =>
        gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model, max_tokens: 100 } })
      assert.strictEqual((yield* ask("large")).status, 403)
      for (const left of ["898", "796", "694"]) {
        const wire = yield* ask("small")
        assert.deepStrictEqual([wire.status, wire.header("x-ratelimit-remaining-tokens")], [200, left])
      }
      assert.isTrue(gateway.sent[0]?.headers.includes("Bearer startup-secret"))
      // nobody reads the answers, so that what they were expected to cost is spent
      assert.strictEqual((yield* ask("small")).status, 402)
      assert.deepInclude((yield* gateway.records).at(-2), {
        status_code: 200,
        usage_source: "status_only",
        total_tokens: null,
        cost_nanos: 10_000_000,
        cost_source: "estimate",
        cost_mode: "none"
      })
    })
  )

  it.effect("rewrites no body: no usage is asked for, and none is hidden", () =>
    Effect.gen(function* () {
      const stream = 'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n'
      const gateway = yield* Proxy.make({ configured: direct, upstream: Upstream.events(stream) })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: '{"stream":true}' })
      assert.deepStrictEqual([gateway.sent[0]?.text, wire.text], ['{"stream":true}', stream])
    })
  )

  it.effect("delegates another bearer to the upstream, without key, limits, record or a look into the body", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: direct, upstream: Upstream.json({ id: "c" }) })
      const headers = ["Authorization", "Bearer sk-client-own", "x-api-key", "also-mine", "x-svc-key-id", "forged"]
      const wire = yield* gateway.ask({ target: `${Proxy.chat}?a=1`, headers, body: "no json at all" })
      const [sent] = gateway.sent
      assert.deepStrictEqual([wire.status, wire.text], [200, '{"id":"c"}'])
      assert.deepInclude(sent, { origin: "https://upstream.test", target: `${Proxy.chat}?a=1`, text: "no json at all" })
      assert.deepStrictEqual(sent?.headers.slice(0, 3), ["authorization", "Bearer sk-client-own", "x-svc-request-id"])
      assert.deepStrictEqual(yield* gateway.records, [])
    })
  )

  it.effect("presents a delegated bearer as the provider row says", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Effect.andThen(direct, provider("bearer")) })
      yield* gateway.ask({ target: Proxy.chat, headers: ["authorization", "Bearer sk-client-own"], body: {} })
      const [sent] = gateway.sent
      assert.deepStrictEqual(
        [sent?.origin, ...(sent?.headers.slice(0, 2) ?? [])],
        ["https://elsewhere.test", "x-upstream-key", "Bearer sk-client-own"]
      )
    })
  )

  it.effect.each<[what: string, request: Partial<ClientRequest>, status: number, code: ErrorCode]>([
    ["no bearer", { headers: [] }, 401, "missing_authorization"],
    ["a scheme that is none", { headers: ["authorization", "Basic x"] }, 401, "malformed_authorization"],
    [
      "a gateway key that nobody made",
      { headers: ["authorization", `Bearer rk_live_${"0".repeat(64)}`] },
      401,
      "invalid_virtual_key"
    ],
    ["a body that is too large", { body: "x".repeat(1_048_577) }, 413, "request_body_too_large"],
    ["a body that stalls", { body: "stalls" }, 408, "request_body_timeout"]
  ])("refuses %s in place of delegating it", ([, request, status, code]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: direct })
      const wire = yield* gateway.ask({
        target: Proxy.chat,
        headers: ["authorization", "Bearer sk-own"],
        body: {},
        ...request
      })
      assert.deepStrictEqual([wire.status, JSON.parse(wire.text).error.code, gateway.sent], [status, code, []])
    })
  )

  it.effect("goes by the mode of the moment: an operator's change holds for the next request", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const ask = gateway.ask({ target: Proxy.chat, headers: ["authorization", "Bearer sk-own"], body: {} })
      assert.strictEqual((yield* ask).status, 401)
      yield* direct
      yield* RealTime.effect(eventually(ask, ({ status }) => status === 200))
      yield* Proxy.configureRoute("chat-completions", {})
      yield* RealTime.effect(eventually(ask, ({ status }) => status === 401))
    })
  )
})

layer(Proxy.database)("ProxyApp, to the direct compatible upstream", (it) => {
  const compat = "/providers/compat/v1/chat/completions"

  it.effect("forwards what follows the prefix, with that upstream's own credential", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstream: Upstream.json({ usage: { prompt_tokens: 3, completion_tokens: 4 } })
      })
      const key = yield* Proxy.issueKey()
      yield* gateway.ask({ target: `${compat}?a=%2F`, headers: key.headers, body: {} })
      const [sent] = gateway.sent
      assert.deepInclude(sent, {
        origin: "https://compat.test",
        target: "/v1/chat/completions?a=%2F",
        headersWithinMs: 60_000
      })
      assert.isTrue(sent?.headers.includes("Bearer compat-secret"))
      assert.deepInclude((yield* gateway.records)[0], {
        route: "/providers/compat/*",
        provider: "compat",
        total_tokens: 7,
        fallback_count: 0
      })
    })
  )

  it.effect.each<[what: string, body: string, type: ReadonlyArray<string>]>([
    ["a form", form('name="model"', "m"), ["content-type", "multipart/form-data; boundary=b"]],
    ["bytes", "\u0000\u001f", ["content-type", "application/octet-stream"]],
    ["a number", "12", ["content-type", "application/json"]],
    ["nothing", "", []]
  ])("takes %s where the path is none of the gateway's own, and passes it byte for byte", ([, body, type]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const target = "/providers/compat/v1/audio/transcriptions"
      const wire = yield* gateway.ask({ target, headers: [...key.headers, ...type], body })
      assert.strictEqual(wire.status, 200, wire.text)
      assert.deepInclude(gateway.sent[0], { target: "/v1/audio/transcriptions", text: body })
      for (const part of type) assert.include(gateway.sent[0]?.headers ?? [], part)
      assert.deepInclude((yield* gateway.records)[0], { provider: "compat", status_code: 200 })
    })
  )

  it.effect("takes no list, in which nobody would find a model", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const target = "/providers/compat/v1/audio/speech"
      const wire = yield* gateway.ask({ target, headers: key.headers, body: '[{"model":"dear"}]' })
      assert.deepStrictEqual([wire.status, gateway.sent], [400, []])
    })
  )

  it.effect("counts a file as media, and not by its bytes", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey({ max_input_tokens_per_request: 2_000 })
      const wire = yield* gateway.ask({
        target: "/providers/compat/v1/images/edits",
        headers: [...key.headers, "content-type", "multipart/form-data; boundary=b"],
        body: form('name="image"; filename="a.png"', "x".repeat(200_000), 'name="n"', "2")
      })
      assert.strictEqual(wire.status, 200, wire.text)
    })
  )

  it.effect.each<[what: string, policy: Readonly<Record<string, unknown>>, body: string, status: number]>([
    ["too much output", { max_output_tokens_per_request: 10 }, form('name="max_tokens"', "6", 'name="n"', "2"), 403],
    [
      "as much as is allowed",
      { max_output_tokens_per_request: 12 },
      form('name="max_tokens"', "6", 'name="n"', "2"),
      200
    ],
    ["no number", {}, form('name="max_tokens"', "6e9"), 400],
    ["tools", {}, form('name="tools"', "[{}]"), 400],
    ["guardrails", {}, form('name="guardrails[]"', "pii-redact"), 400],
    ["another model", { allowed_models: ["a"] }, form('name="model"', "b"), 403],
    ["its model", { allowed_models: ["a"] }, form('name="model"', "a"), 200],
    ["a stream", { allow_streaming: false }, form('name="stream"', "true"), 403],
    ["two models", {}, form('name="model"', "a", 'name="model"', "b"), 400],
    ["several models in one name", {}, form('name="model"', "a,b"), 400],
    ["no boolean", {}, form('name="stream"', "on"), 400],
    ["no end", {}, form('name="model"', "a").slice(0, -4), 400]
  ])("a form says what a policy looks at: %s", ([, policy, body, status]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey(policy)
      const wire = yield* gateway.ask({
        target: "/providers/compat/v1/audio/transcriptions",
        headers: [...key.headers, "content-type", "multipart/form-data; boundary=b"],
        body
      })
      assert.deepStrictEqual([wire.status, gateway.sent.length], [status, status === 200 ? 1 : 0], wire.text)
    })
  )

  it.effect("takes no more of it than of any body, and on the gateway's own routes JSON alone", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const headers = [...key.headers, "content-type", "application/octet-stream"]
      const ask = (path: string, bytes: number) =>
        Effect.map(
          gateway.ask({ target: `/providers/compat${path}`, headers, body: "x".repeat(bytes) }),
          ({ status }) => status
        )
      assert.strictEqual(yield* ask("/v1/uploads", 1_048_576), 200)
      assert.strictEqual(yield* ask("/v1/uploads", 1_048_577), 413)
      assert.strictEqual(yield* ask("/v1/embeddings", 10), 415)
      assert.strictEqual(gateway.sent.length, 1)
    })
  )

  it.effect.each([
    ..."/key/generate /user/new /model/new /config/update /ui /ui/login /chat/completions /".split(" "),
    ..."/v1/organization/admin_api_keys /v1/model/info /v1/Model/info /v1/mo%64el/info /v1/chat/Completions".split(" "),
    ..."/V1/chat/completions /v1 /v1x/y /openai/deployments/m/chat/completions".split(" ")
  ])("sends nothing to %s", (path) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: `/providers/compat${path}`, headers: key.headers, body: {} })
      assert.deepStrictEqual([wire.status, JSON.parse(wire.text).error.code], [404, "unsupported_route"])
      assert.deepStrictEqual(gateway.sent, [])
    })
  )

  it.effect("opens the paths that an operator names, and its administration never", () =>
    Effect.gen(function* () {
      const directCompatPaths = ["/rerank", "/openai/*", "/key/*"]
      const gateway = yield* Proxy.make({ settings: { directCompatPaths } })
      const key = yield* Proxy.issueKey()
      const statuses = yield* Effect.forEach(["/rerank", "/openai/x", "/key/generate", "/v1/embeddings"], (path) =>
        Effect.map(
          gateway.ask({ target: `/providers/compat${path}`, headers: key.headers, body: {} }),
          ({ status }) => status
        )
      )
      assert.deepStrictEqual(statuses, [200, 200, 404, 404])
    })
  )

  it.effect("is not there until it is configured", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ settings: { directCompat: Option.none() } })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: compat, headers: key.headers, body: {} })
      assert.deepStrictEqual([wire.status, JSON.parse(wire.text).error.code], [500, "invalid_configuration"])
    })
  )

  it.effect.each<[reason: string, failing: Upstream.Script]>([
    ...[429, 500, 502, 503, 504].map((status): [string, Upstream.Script] => [
      `http_${status}`,
      Upstream.json({ no: "thanks" }, status)
    ]),
    ["upstream_connection", Upstream.fails("connect", "refused")],
    ["gateway_overloaded", Upstream.fails("connect", "busy")],
    ["upstream_timeout", Upstream.fails("headers", "timeout")]
  ])(
    "falls back to the model proxy once when that one fails (%s), and says so on record and meter",
    ([reason, failing]) =>
      Effect.gen(function* () {
        const ok = Upstream.json({ usage: { prompt_tokens: 3, completion_tokens: 4 } })
        const gateway = yield* Proxy.make({
          upstream: (sink, request) => (request.origin === "https://compat.test" ? failing : ok)(sink, request)
        })
        const key = yield* Proxy.issueKey({ rpm_limit: 5 })
        const wire = yield* gateway.ask({ target: compat, headers: key.headers, body: '{"model":"m"}' })
        assert.deepStrictEqual(
          [wire.status, wire.ending, wire.header("x-ratelimit-remaining-requests")],
          [200, "whole", "4"]
        )
        assert.deepStrictEqual(
          gateway.sent.map(({ origin, target, text }) => [origin, target, text]),
          [
            ["https://compat.test", "/v1/chat/completions", '{"model":"m"}'],
            ["https://upstream.test", "/v1/chat/completions", '{"model":"m"}']
          ]
        )
        assert.isFalse(gateway.sent[1]?.headers.includes("Bearer compat-secret"))
        const [record, ...more] = yield* gateway.records
        assert.lengthOf(more, 0)
        assert.deepInclude(record, { provider: "upstream", fallback_count: 1, status_code: 200, total_tokens: 7 })
        assert.strictEqual(record?.fallback_reason, reason)
        const [counted = ""] = (yield* PrometheusMetrics.format())
          .split("\n")
          .filter((line) => line.startsWith("gateway_provider_fallbacks_by_provider_total{") && line.includes(reason))
        for (const part of ['from_provider="compat"', 'to_provider="upstream"', "} 1"]) assert.include(counted, part)
      }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  it.effect.each<[what: string, policy: object, script: Upstream.Script, status: number]>([
    ["a refusal that is the client's own", {}, Upstream.json({ error: {} }, 400), 400],
    [
      "a key that may not use the model proxy",
      { allowed_providers: ["compat"] },
      Upstream.json({ error: {} }, 503),
      503
    ],
    ["an answer that has begun", {}, Upstream.fails("body", "reset", Upstream.answers(200, [], "a")), 200]
  ])("does not fall back from %s", ([, policy, script, status]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: script })
      const key = yield* Proxy.issueKey({ ...policy })
      const wire = yield* gateway.ask({ target: compat, headers: key.headers, body: {} })
      assert.deepStrictEqual([wire.status, gateway.sent.length], [status, 1])
      assert.deepInclude((yield* gateway.records)[0], { provider: "compat", fallback_count: 0, fallback_reason: null })
    })
  )
})

/** Parts of a form with the boundary `b`, each with its parameters and its value. */
const form = (...parts: ReadonlyArray<string>): string => {
  const written = parts.flatMap((text, i) =>
    i % 2 === 0 ? ["--b", `content-disposition: form-data; ${text}`, "", parts[i + 1] ?? ""] : []
  )
  return [...written, "--b--", ""].join("\r\n")
}

const direct = Proxy.configureRoute("chat-completions", { mode: "direct_upstream_passthrough" })

const provider = (format: "raw" | "bearer") =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    yield* sql`INSERT INTO provider_configs (provider, name, base_url, sealed_credential, credential_origin, credential_header_mode,
      credential_header_name, credential_header_value_format) VALUES ('upstream', 'main', 'https://elsewhere.test/ignored',
      'clear.provider-secret', 'https://elsewhere.test', 'custom_header', 'x-upstream-key', ${format})`
  })
