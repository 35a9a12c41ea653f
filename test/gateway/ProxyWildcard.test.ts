import { assert, it as check, describe, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import * as LocationHeaders from "../../src/gateway/forward/LocationHeaders.ts"
import type { ErrorCode } from "../../src/gateway/GatewayError.ts"
import type { Passthrough } from "../../src/policy/routes/Passthrough.ts"
import * as UpstreamBase from "../../src/policy/routes/UpstreamBase.ts"
import { Database } from "../../src/services/Database.ts"
import type { UsageRecord } from "../../src/state/UsageRecord.ts"
import { eventually } from "../Eventually.ts"
import * as RealTime from "../RealTime.ts"
import * as Proxy from "./Proxy.ts"
import { type ClientRequest, make as wireOf } from "./RecordingWire.ts"
import * as Upstream from "./ScriptedUpstream.ts"

layer(Proxy.database)("ProxyApp, by the wildcard", (it) => {
  it.effect("is off until an operator turns it on, and then holds for the next request", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const ask = gateway.ask({ method: "GET", target: "/v1/files", headers: key.headers })
      const refused = yield* ask
      assert.deepStrictEqual([refused.status, codeOf(refused.text)], [404, "unsupported_route"])
      yield* Proxy.openWildcard()
      yield* RealTime.effect(eventually(ask, ({ status }) => status === 200))
      yield* Proxy.openWildcard({ enabled: false })
      yield* RealTime.effect(eventually(ask, ({ status }) => status === 404))
    })
  )

  it.effect("forwards path, query, body and cookies as they came, with the key's upstream credential", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard(),
        upstream: Upstream.json({ ok: true }, 201)
      })
      const key = yield* Proxy.issueKey({}, { project: true })
      yield* mapped(key.projectId ?? "", "project-secret")
      const target = "/v1/r%65rank/a%20b?x=%2f..//&y=[1]"
      const own = ["Cookie", "a=1; b=2", "X-Custom", "kept", "x-svc-key-id", "forged", "x-api-key", "stolen"]
      const wire = yield* gateway.ask({ target, headers: [...key.headers, ...own], body: "not json \u00e9" })
      assert.deepStrictEqual([wire.status, wire.text, wire.ending], [201, '{"ok":true}', "whole"])
      const [sent] = gateway.sent
      assert.deepInclude(sent, { origin: "https://upstream.test", method: "POST", target, text: "not json \u00e9" })
      assert.deepInclude(sent, { headersWithinMs: 120_000, idleWithinMs: 120_000 })
      for (const kept of ["a=1; b=2", "kept", "Bearer project-secret", key.id])
        assert.include(sent?.headers ?? [], kept)
      for (const gone of [`Bearer ${key.raw}`, "forged", "stolen"]) assert.notInclude(sent?.headers ?? [], gone)
    })
  )

  it.effect("needs no Redis where the policy counts no requests, and records the status alone", () =>
    Effect.gen(function* () {
      const usage = { prompt_tokens: 5, completion_tokens: 6 }
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard(),
        upstream: Upstream.json({ usage }, 418)
      })
      const key = yield* Proxy.issueKey({ daily_budget_usd: 0, tpm_limit: 0 })
      yield* gateway.redisGoes
      const wire = yield* gateway.ask({ target: "/v1/audio/speech", headers: key.headers, body: { model: "m" } })
      assert.strictEqual(wire.status, 418)
      yield* gateway.redisReturns
      const again = yield* gateway.ask({ target: "/v1/audio/speech", headers: key.headers, body: { model: "m" } })
      assert.strictEqual(again.status, 418)
      assert.deepInclude((yield* gateway.records)[0], {
        key_id: key.id,
        route: "/upstream/*",
        provider: "upstream",
        model: null,
        status_code: 418,
        error_code: null,
        usage_source: "status_only",
        total_tokens: null,
        cost_nanos: null,
        cost_source: "none",
        cost_mode: "none"
      })
    })
  )

  it.effect.each<
    [what: string, policy: Readonly<Record<string, unknown>>, request: Partial<ClientRequest>, check: string]
  >([
    ["deny", { deny: true }, {}, "deny"],
    ["allowed_routes", { allowed_routes: ["/v1/responses"] }, {}, "route"],
    ["allowed_providers", { allowed_providers: ["compat"] }, {}, "provider"],
    ["allowed_hours_utc", { allowed_hours_utc: [11] }, {}, "hours"],
    ["allowed_models", { allowed_models: ["m"] }, { body: { model: "m" } }, "model"],
    ["allowed_models, by a query", { allowed_models: ["m"] }, { target: "/v1/realtime?model=x" }, "model"],
    [
      "allowed_models, by a path",
      { allowed_models: ["m"] },
      { method: "POST", target: "/v1/engines/x/completions" },
      "model"
    ],
    [
      "allowed_models, by a job that goes on",
      { allowed_models: ["m"] },
      { method: "POST", target: "/v1/fine_tuning/jobs/j/resume" },
      "later_work"
    ],
    [
      "allowed_models, by a batch of an uploaded file",
      { allowed_models: ["m"] },
      { target: "/v1/batches", body: batch },
      "later_work"
    ],
    ["a budget", { daily_budget_usd: 5 }, { target: "/v1/batches", body: batch }, "later_work"],
    ["a limit on tokens", { tpm_limit: 5 }, { target: "/v1/fine_tuning/jobs", body: batch }, "later_work"],
    ["allow_tools", { allow_tools: false }, { body: "?" }, "tools"],
    ["allow_streaming", { allow_streaming: false }, { body: "?" }, "streaming"],
    ["max_output_tokens_per_request", { max_output_tokens_per_request: 5 }, { body: "?" }, "output_tokens"],
    ["max_input_tokens_per_request", { max_input_tokens_per_request: 5 }, { body: "?" }, "input_tokens"]
  ])("holds a key by %s", ([, policy, request, check]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.openWildcard() })
      const key = yield* Proxy.issueKey(policy)
      const method = request.body === undefined ? "GET" : "POST"
      const headers = request.body === undefined ? key.headers : [...key.headers, "transfer-encoding", "chunked"]
      const wire = yield* gateway.ask({ method, target: "/v1/files", headers, ...request })
      assert.deepStrictEqual([wire.status, codeOf(wire.text), gateway.sent], [403, "policy_denied", []])
      assert.deepInclude((yield* gateway.records)[0], {
        status_code: 403,
        error_code: "policy_denied",
        denial: { check, layer: "key" }
      })
    })
  )

  it.effect("holds every key to the layers of models, which a body may name", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Effect.gen(function* () {
          const { sql } = yield* Database
          yield* Proxy.openWildcard()
          yield* sql`INSERT INTO policy_layers (layer_kind, scope_id, policy) VALUES ('model', 'layered', '{"deny":true}')`
        })
      })
      const { headers } = yield* Proxy.issueKey()
      const ask = (request: Partial<ClientRequest>) => gateway.ask({ target: "/v1/audio/speech", headers, ...request })
      const framed = [...headers, "transfer-encoding", "chunked"]
      const refused = yield* ask({ body: { model: "layered" }, headers: framed })
      assert.deepStrictEqual([refused.status, codeOf(refused.text)], [403, "policy_denied"])
      assert.strictEqual((yield* ask({ method: "GET", target: "/v1/realtime?model=layered" })).status, 403)
      assert.isEmpty(gateway.sent)
      assert.strictEqual((yield* ask({ method: "GET" })).status, 200)
      const { sql } = yield* Database
      yield* sql`DELETE FROM policy_layers`
    })
  )

  it.effect("holds a batch of an uploaded file to what layers share, unless the settings skip it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const ask = Effect.fnUntraced(function* (settings: Partial<Passthrough>) {
        const configured = Effect.andThen(
          Proxy.openWildcard(settings),
          sql`INSERT INTO policy_layers (layer_kind, scope_id, shared) VALUES ('global', NULL, '{"daily_budget_usd":5}')`
        )
        const gateway = yield* Proxy.make({ configured })
        const { headers } = yield* Proxy.issueKey({ rpm_limit: 5 })
        const wire = yield* gateway.ask({ target: "/v1/batches", headers, body: batch })
        const listed = yield* gateway.ask({ target: "/v1/fine_tuning/jobs", method: "GET", headers })
        yield* sql`DELETE FROM policy_layers`
        assert.notStrictEqual(listed.status, 403)
        return [wire.status, (yield* gateway.records)[0]?.denial?.check]
      })
      assert.deepStrictEqual(yield* ask({}), [403, "shared_daily_budget_usd"])
      assert.deepStrictEqual(yield* ask({ body_policies: "skip", ownership: "shared" }), [200, undefined])
    })
  )

  it.effect("lets a key go whose policy names the wildcard, and bodies where a policy can be skipped", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.openWildcard({ body_policies: "skip" }) })
      const named = yield* Proxy.issueKey({ allowed_routes: ["/upstream/*"] })
      const listed = yield* Proxy.issueKey({ allowed_models: ["m"], allow_tools: false })
      const statuses = yield* Effect.forEach([named, listed], ({ headers }) =>
        Effect.map(gateway.ask({ target: "/v1/audio/speech", headers, body: { model: "x" } }), ({ status }) => status)
      )
      assert.deepStrictEqual(statuses, [200, 200])
    })
  )

  it.effect("lets a key with a list of models read what has no body", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.openWildcard() })
      const key = yield* Proxy.issueKey({ allowed_models: ["m"] })
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/fine-tunes", headers: key.headers })
      assert.strictEqual(wire.status, 200)
    })
  )

  it.effect.each<[limit: string, code: ErrorCode]>([
    ["rpm_limit", "rate_limit_exceeded"],
    ["max_requests_per_day", "rate_limit_exceeded"]
  ])("counts requests with those of the governed routes: %s", ([limit, code]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.openWildcard() })
      const key = yield* Proxy.issueKey({ [limit]: 2, daily_budget_usd: 1 })
      const ask = (target: string) => gateway.ask({ target, headers: key.headers, body: { model: "m" } })
      assert.strictEqual((yield* ask(Proxy.chat)).status, 200)
      const second = yield* ask("/v1/audio/speech")
      assert.strictEqual(second.status, 200)
      assert.strictEqual(second.header("x-ratelimit-remaining-requests"), limit === "rpm_limit" ? "0" : undefined)
      const third = yield* ask("/v1/audio/speech")
      assert.deepStrictEqual([third.status, codeOf(third.text)], [429, code])
      assert.isNumber(JSON.parse(third.text).error.retry_after_seconds)
      assert.strictEqual(third.header("retry-after") !== undefined, limit === "rpm_limit")
      assert.lengthOf(gateway.sent, 2)
      const records = yield* gateway.records
      assert.deepStrictEqual(
        records.map(({ error_code, status_code }) => [status_code, error_code]),
        [
          [200, null],
          [200, null],
          [429, code]
        ]
      )
    })
  )

  it.effect("sends nothing where nobody can say whether a limit is full", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.openWildcard() })
      const key = yield* Proxy.issueKey({ rpm_limit: 2 })
      yield* gateway.redisGoes
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/fine-tunes", headers: key.headers })
      assert.deepStrictEqual([wire.status, codeOf(wire.text), gateway.sent], [503, "control_state_unavailable", []])
      yield* gateway.redisReturns
    })
  )

  it.effect.each([
    { at: "its body, before it is admitted", method: "readBody", target: "/v1/audio/speech", status: 500, sent: 0 },
    { at: "its body, on its way to the upstream", method: "streamBody", target: "/v1/files", status: 500, sent: 0 },
    { at: "the end of its answer, which was recorded", method: "end", target: "/v1/files", status: 200, sent: 1 }
  ] as const)("a defect at $at leaves one record", ({ method, sent, status, target }) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.openWildcard(), upstream: Upstream.json({ ok: true }) })
      const key = yield* Proxy.issueKey({ rpm_limit: 2 })
      const type = target === "/v1/files" ? "multipart/form-data; boundary=x" : "application/json"
      const headers = [...key.headers, "content-type", type, "content-length", "2"]
      const wire = wireOf({ target, headers, body: {} })
      const fails = () => {
        throw new Error("canary-defect")
      }
      yield* gateway.handle({ ...wire, [method]: fails })
      assert.deepStrictEqual([wire.status, gateway.sent.length], [status, sent])
      assert.notInclude(wire.text, "canary")
      assert.deepStrictEqual(outcomesOf(yield* gateway.records), [[status, sent === 0 ? "internal_error" : null]])
    })
  )

  it.effect("a defect after the client has the head of its answer leaves one record, with the status that it saw", () =>
    Effect.gen(function* () {
      let asked = Number.NEGATIVE_INFINITY
      const answer = Upstream.answers(200, ["content-type", "text/plain"], "some of it", "the rest")
      const clock = yield* Clock.Clock
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard(),
        upstream: (sink, request) => Effect.tap(answer(sink, request), () => Effect.sync(() => (asked = 0)))
      }).pipe(
        Effect.provideService(Clock.Clock, {
          ...clock,
          // the end of the exchange is noted, and what comes of it then cannot be recorded
          currentTimeMillisUnsafe: () => {
            if (++asked === 2) throw new Error("canary-defect")
            return clock.currentTimeMillisUnsafe()
          }
        })
      )
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/anything", headers: key.headers })
      assert.deepStrictEqual([wire.status, wire.ending], [200, "cut"])
      assert.deepStrictEqual(outcomesOf(yield* gateway.records), [[200, "internal_error"]])
    })
  )

  it.effect("is bounded by the policy's sizes", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard(),
        upstream: Upstream.json({ long: "x".repeat(100) })
      })
      const ask = Effect.fnUntraced(function* (policy: Readonly<Record<string, unknown>>) {
        const key = yield* Proxy.issueKey(policy)
        const wire = yield* gateway.ask({ target: "/v1/audio/speech", headers: key.headers, body: "x".repeat(100) })
        return [wire.status, codeOf(wire.text)]
      })
      assert.deepStrictEqual(yield* ask({ max_request_body_bytes: 99 }), [413, "request_body_too_large"])
      assert.deepStrictEqual(yield* ask({ max_response_body_bytes: 99 }), [413, "response_body_too_large"])
    })
  )

  it.effect("refuses keys under a guardrail, mandatory or on by default, unless the settings skip them", () =>
    Effect.gen(function* () {
      const ask = Effect.fnUntraced(function* (
        settings: Partial<Passthrough>,
        own: Parameters<typeof Proxy.issueKey>[1],
        configured: Effect.Effect<unknown, unknown, Database> = Effect.void
      ) {
        const gateway = yield* Proxy.make({ configured: Effect.andThen(Proxy.openWildcard(settings), configured) })
        const key = yield* Proxy.issueKey({}, own)
        const wire = yield* gateway.ask({ target: "/v1/completions", headers: key.headers, body: { prompt: "x" } })
        return [wire.status, gateway.sent.length]
      })
      const mandatory = { guardrails: { mandatory_guardrails: ["pii-redact"] } }
      const onByDefault = Effect.flatMap(
        Database,
        ({ sql }) => sql`UPDATE guardrail_definitions SET default_on = true WHERE name = 'pii-redact'`
      )
      assert.deepStrictEqual(yield* ask({}, mandatory), [403, 0])
      assert.deepStrictEqual(yield* ask({ guardrails: "skip" }, mandatory), [200, 1])
      assert.deepStrictEqual(yield* ask({}, {}, onByDefault), [403, 0])
      assert.deepStrictEqual(yield* ask({}, { guardrails: { optional_guardrails: ["pii-redact"] } }), [200, 1])
    })
  )

  it.effect("takes a canonical path with another method, and never the canonical route itself", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.openWildcard({ ui_exposure: "trusted_ingress" }) })
      const key = yield* Proxy.issueKey({ allowed_routes: ["/upstream/*"] })
      const ask = (method: string, target: string, headers = key.headers) => gateway.ask({ method, target, headers })
      assert.strictEqual((yield* ask("GET", Proxy.chat)).status, 200)
      assert.strictEqual((yield* ask("POST", "/v1/models")).status, 200)
      const governed = yield* ask("GET", "/v1/models")
      assert.deepStrictEqual([governed.status, codeOf(governed.text)], [403, "policy_denied"])
      const keyless = yield* ask("GET", "/v1/models", [])
      assert.deepStrictEqual([keyless.status, codeOf(keyless.text)], [401, "missing_authorization"])
      assert.lengthOf(gateway.sent, 2)
    })
  )

  it.effect("services and the control API never fall through to it", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.openWildcard({ allowed_paths: ["/*"] }) })
      const key = yield* Proxy.issueKey()
      for (const target of ["/services/ocr", "/services/ocr/x", "/admin-ui", "/admin-ui/healthz", "/%61dmin-ui/x"]) {
        const wire = yield* gateway.ask({ method: "GET", target, headers: key.headers })
        assert.strictEqual(wire.status, 404, target)
      }
      assert.deepStrictEqual(gateway.sent, [])
    })
  )

  it.effect.each<[what: string, request: Partial<ClientRequest>, status: number, code: ErrorCode, recorded: boolean]>([
    ["no key", { headers: [] }, 401, "missing_authorization", false],
    [
      "a bearer that is no gateway key",
      { headers: ["authorization", "Bearer sk-x"] },
      401,
      "malformed_authorization",
      false
    ],
    [
      "a key that nobody made",
      { headers: ["authorization", `Bearer rk_live_${"0".repeat(64)}`] },
      401,
      "invalid_virtual_key",
      false
    ],
    ["a body over the limit", { body: "x".repeat(101) }, 413, "request_body_too_large", true],
    ["a body that stalls", { body: "stalls" }, 408, "request_body_timeout", true]
  ])("refuses %s", ([, request, status, code, recorded]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.openWildcard({ max_request_body_bytes: 100 }) })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: "/v1/x", headers: key.headers, body: "x", ...request })
      assert.deepStrictEqual([wire.status, codeOf(wire.text), gateway.sent], [status, code, []])
      const records = yield* gateway.records
      assert.deepStrictEqual(
        records.map((record) => [record.status_code, record.error_code]),
        recorded ? [[status, code]] : []
      )
    })
  )

  it.effect.each<[what: string, script: Upstream.Script, status: number, code: ErrorCode]>([
    ["an answer over the limit", Upstream.json({ long: "x".repeat(100) }), 413, "response_body_too_large"],
    ["an upstream that is late", Upstream.fails("headers", "timeout"), 504, "upstream_timeout"],
    ["an upstream that is not there", Upstream.fails("connect", "refused"), 502, "upstream_connection"]
  ])("says and records %s", ([, script, status, code]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard({ max_response_body_bytes: 50, timeout_ms: 7 }),
        upstream: script
      })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/x", headers: key.headers })
      assert.deepStrictEqual([wire.status, codeOf(wire.text)], [status, code])
      assert.deepInclude((yield* gateway.records)[0], { status_code: status, error_code: code })
      assert.strictEqual(gateway.sent[0]?.headersWithinMs, 7)
    })
  )

  it.effect("streams an answer of unknown length through, and cuts it at the limit", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard({ max_response_body_bytes: 10 }),
        upstream: Upstream.answers(200, [], "12345", "67890", "!")
      })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/x", headers: key.headers })
      assert.deepStrictEqual([wire.status, wire.text, wire.ending], [200, "1234567890", "cut"])
      assert.deepInclude((yield* gateway.records)[0], { status_code: 200, error_code: "response_body_too_large" })
    })
  )

  it.effect("says and records that there is no upstream credential", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard(),
        upstreams: Proxy.keyless
      })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/x", headers: key.headers })
      assert.deepStrictEqual([wire.status, codeOf(wire.text), gateway.sent], [500, "invalid_configuration", []])
      assert.deepInclude((yield* gateway.records)[0], { status_code: 500, error_code: "invalid_configuration" })
    })
  )
})

layer(Proxy.database)("ProxyApp, behind a trusted ingress", (it) => {
  const trusted = { allowed_paths: ["/*"], ui_exposure: "trusted_ingress" } as const

  it.effect("serves the UI without a key, with the provider's own credential, and keeps no record", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Effect.andThen(Proxy.openWildcard(trusted), provider) })
      const key = yield* Proxy.issueKey({}, { project: true })
      yield* mapped(key.projectId ?? "", "project-secret")
      for (const headers of [[], key.headers, ["authorization", "Basic eDp5"], ["cookie", "session=1"]]) {
        const wire = yield* gateway.ask({ method: "GET", target: "/ui/?page=1", headers })
        assert.strictEqual(wire.status, 200)
      }
      assert.lengthOf(gateway.sent, 4)
      for (const { headers, origin, target } of gateway.sent) {
        assert.deepStrictEqual([origin, target], ["https://elsewhere.test", "/ui/?page=1"])
        assert.deepStrictEqual(
          headers.filter((_, i) => headers[i - 1] === "x-upstream-key"),
          ["provider-secret"]
        )
        assert.notInclude(headers, "authorization")
        assert.notInclude(headers, key.id)
      }
      assert.include(gateway.sent[3]?.headers ?? [], "session=1")
      assert.deepStrictEqual(yield* gateway.records, [])
    })
  )

  it.effect("asks for a key wherever one of the conditions is missing", () =>
    Effect.gen(function* () {
      const ask = Effect.fnUntraced(function* (settings: Parameters<typeof Proxy.openWildcard>[0]) {
        const gateway = yield* Proxy.make({ configured: Proxy.openWildcard({ ...trusted, ...settings }) })
        const statusOf = (method: string, target: string) =>
          Effect.map(gateway.ask({ method, target }), ({ status }) => status)
        return [
          yield* statusOf("GET", "/ui/"),
          yield* statusOf("POST", "/key/generate"),
          yield* statusOf("POST", "/model/new"),
          yield* statusOf("GET", "/v1/files")
        ]
      })
      assert.deepStrictEqual(yield* ask({ admin_api_exposure: "explicitly_exposed" }), [200, 200, 200, 401])
      assert.deepStrictEqual(yield* ask({}), [200, 404, 404, 401])
      assert.deepStrictEqual(yield* ask({ admin_api_exposure: "operator_only" }), [200, 401, 401, 401])
      const exposed = { ui_exposure: "explicitly_exposed", admin_api_exposure: "explicitly_exposed" } as const
      assert.deepStrictEqual(yield* ask(exposed), [401, 401, 401, 401])
      const all = { admin_api_exposure: "explicitly_exposed" } as const
      assert.deepStrictEqual(yield* ask({ ...all, enabled: false }), [404, 404, 404, 404])
      assert.deepStrictEqual(yield* ask({ ...all, allowed_methods: ["GET"] }), [200, 404, 404, 401])
      assert.deepStrictEqual(yield* ask({ ...all, allowed_paths: ["/ui/*"] }), [200, 404, 404, 404])
    })
  )

  it.effect("puts a Location into the UI at the address that the browser knows, and only there", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.openWildcard(trusted),
        upstream: Upstream.answers(303, [
          "Location",
          "https://upstream.test/ui/?login=1",
          "Set-Cookie",
          "a=1",
          "set-cookie",
          "b=2"
        ])
      })
      const key = yield* Proxy.issueKey()
      const forwarded = ["x-forwarded-proto", "https", "x-forwarded-host", "portal.example"]
      const wire = yield* gateway.ask({ target: "/login", headers: forwarded, body: "user=a" })
      assert.strictEqual(wire.header("location"), "https://portal.example/ui/?login=1")
      assert.deepStrictEqual(
        wire.received.filter((_, i) => wire.received[i - 1]?.toLowerCase() === "set-cookie"),
        ["a=1", "b=2"]
      )
      const keyed = yield* gateway.ask({ method: "GET", target: "/v1/x", headers: [...key.headers, ...forwarded] })
      assert.strictEqual(keyed.header("location"), "https://upstream.test/ui/?login=1")
    })
  )
})

describe("PublicLocation", () => {
  const moved = (location: string, ...request: ReadonlyArray<string>) =>
    LocationHeaders.forBrowser(request, UpstreamBase.of("http://up:4000"))(["x", "y", "LOCATION", location])[3]

  check.each([
    ["/ui", ["host", "gw:8080"], "http://gw:8080/ui"],
    ["/ui/", ["Host", "gw:8080", "X-Forwarded-Proto", "https"], "https://gw:8080/ui/"],
    ["/ui?a=/b", ["host", "gw", "x-forwarded-host", "a.example, b.example"], "http://a.example/ui?a=/b"],
    ["http://up:4000/ui/x#y", ["host", "[::1]:8080", "x-forwarded-proto", "https,http"], "https://[::1]:8080/ui/x#y"],
    ["/ui/", ["host", "gw", "x-forwarded-host", "evil/../x"], "/ui/"],
    ["/ui/", ["host", "gw", "x-forwarded-proto", "javascript"], "/ui/"],
    ["/ui/", [], "/ui/"]
  ])("puts %s for a browser with %j at %s", (location, request, expected) => {
    assert.strictEqual(moved(location, ...request), expected)
  })

  check.each([
    ["/litellm/ui/x", "http://gw/ui/x"],
    ["http://up:4000/litellm/ui", "http://gw/ui"],
    ["/ui/x", "/ui/x"],
    ["/litellmx/ui", "/litellmx/ui"]
  ])("puts %s of an upstream below a path at %s", (location, expected) => {
    const base = UpstreamBase.of("http://up:4000/litellm/v1")
    assert.strictEqual(LocationHeaders.forBrowser(["host", "gw"], base)(["location", location])[1], expected)
  })

  check.each(["/uix", "/", "ui/", "//up:4000/ui", "https://up:4000/ui", "http://up:40001/ui", "http://up:4000/key"])(
    "leaves %s as it is",
    (location) => assert.strictEqual(moved(location, "host", "gw"), location)
  )
})

const outcomesOf = (records: ReadonlyArray<UsageRecord>) =>
  records.map(({ error_code, status_code }) => [status_code, error_code])

const batch = { input_file_id: "file-1", endpoint: "/v1/chat/completions" }

const codeOf = (text: string): unknown => JSON.parse(text).error.code

const provider = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`INSERT INTO provider_configs (provider, name, base_url, sealed_credential, credential_origin,
    credential_header_mode, credential_header_name) VALUES ('upstream', 'main', 'https://elsewhere.test',
    'clear.provider-secret', 'https://elsewhere.test',
    'custom_header', 'x-upstream-key')`
})

const mapped = (projectId: string, secret: string) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    yield* sql`INSERT INTO upstream_credential_mappings (scope, project_id, sealed_credential)
      VALUES ('project', ${projectId}, ${`clear.${secret}`})`
  })
