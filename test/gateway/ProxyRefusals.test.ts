import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { ErrorCode } from "../../src/gateway/GatewayError.ts"
import * as Proxy from "./Proxy.ts"
import * as RecordingWire from "./RecordingWire.ts"
import * as Upstream from "./ScriptedUpstream.ts"

const asJson = (parameters = "") => ["content-type", `application/json${parameters}`]

layer(Proxy.database)("ProxyApp refuses", (it) => {
  it.effect.each<Unrecorded>([
    ["a path that is none", { target: "/v1/../key" }, 404, "unsupported_route"],
    ["an unknown route", { target: "/key/generate" }, 404, "unsupported_route"],
    ["a method that the path does not have", { method: "GET", target: Proxy.chat }, 404, "unsupported_route"],
    ["the control API", { method: "GET", target: "/admin-ui/admin/keys" }, 404, "unsupported_route"],
    ["a stranger who asks for a service", { target: "/services/ocr/v1/models" }, 401, "missing_authorization"],
    ["no credential", { headers: [] }, 401, "missing_authorization"],
    ["only the legacy key header", { headers: ["x-aih-api-key", known] }, 401, "missing_authorization"],
    ["only the key header of identity mode", { headers: ["x-svc-key", known] }, 401, "missing_authorization"],
    ["family B's key header on family A", { headers: ["x-api-key", known] }, 401, "missing_authorization"],
    [
      "another upstream's key in family B's header",
      { target: Proxy.messages, headers: ["x-api-key", "sk-ant-1"] },
      401,
      "missing_authorization"
    ],
    ["another scheme", { headers: ["authorization", `Basic ${known}`] }, 401, "malformed_authorization"],
    ["a scheme in lower case", { headers: ["authorization", `bearer ${known}`] }, 401, "malformed_authorization"],
    ["a bearer of nothing", { headers: ["authorization", "Bearer  "] }, 401, "malformed_authorization"],
    [
      "a key of another kind",
      { headers: ["authorization", "Bearer op_live_0123456789abcdef"] },
      401,
      "malformed_authorization"
    ],
    [
      "a key that is too short",
      { headers: ["authorization", "Bearer rk_live_01234567"] },
      401,
      "malformed_authorization"
    ],
    ["a key that nobody made", { headers: ["authorization", `Bearer ${known}`] }, 401, "invalid_virtual_key"]
  ])("%s, without a record", ([, request, status, code]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const wire = yield* gateway.ask({ target: Proxy.chat, body: {}, ...request })
      assert.deepStrictEqual([wire.status, codeOf(wire.text)], [status, code])
      assert.deepStrictEqual([yield* gateway.records, gateway.sent], [[], []])
    })
  )

  it.effect.each([
    [{ disabled: true }, "disabled_virtual_key"],
    [{ revokedAt: new Date(0) }, "revoked_virtual_key"],
    [{ revokedAt: new Date(0), disabled: true, expiresAt: new Date(0) }, "revoked_virtual_key"],
    [{ disabled: true, expiresAt: new Date(0) }, "disabled_virtual_key"],
    [{ expiresAt: new Date(Proxy.noon) }, "expired_virtual_key"]
  ] as const)("a key that is %j, without a record", ([state, code]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey({}, state)
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
      assert.deepStrictEqual([wire.status, codeOf(wire.text), yield* gateway.records], [401, code, []])
    })
  )

  it.effect("a key in the very millisecond of its expiry, while it is in use", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey({}, { expiresAt: new Date(Proxy.noon + 1000) })
      const ask = Effect.map(
        gateway.ask({ method: "GET", target: "/v1/models", headers: key.headers }),
        ({ status }) => status
      )
      yield* TestClock.adjust(999)
      assert.strictEqual(yield* ask, 200)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* ask, 401)
    })
  )

  it.effect.each<Recorded>([
    ["a content type that is no JSON", {}, { headers: ["content-type", "text/plain"] }, 415, "unsupported_media_type"],
    ["an encoded body", {}, { headers: ["content-encoding", "gzip"] }, 415, "unsupported_media_type"],
    ["two content types", {}, { headers: [...asJson(), ...asJson()] }, 415, "unsupported_media_type"],
    ["another charset", {}, { headers: asJson("; charset=utf-7") }, 415, "unsupported_media_type"],
    ["a body that is no JSON", {}, { body: "not json" }, 400, "invalid_request_body"],
    ["a body that is nested too deep", {}, { body: "[".repeat(1_000_000) }, 400, "invalid_request_body"],
    ["a body of too many values", {}, { body: `{"a":[${"{},".repeat(100_000)}{}]}` }, 400, "invalid_request_body"],
    ["a member twice", {}, { body: '{"model":"a","model":"b"}' }, 400, "invalid_request_body"],
    ["guardrails that are no names", {}, { body: { guardrails: "all" } }, 400, "invalid_guardrail_request"],
    ["guardrails that nobody offers", {}, { body: { guardrails: ["pii-redact"] } }, 403, "guardrail_forbidden"],
    ["a body beyond the route's limit", {}, { body: { a: "x".repeat(1_048_576) } }, 413, "request_body_too_large"],
    [
      "a body beyond the key's limit",
      { max_request_body_bytes: 10 },
      { body: { a: "xxxxxxx" } },
      413,
      "request_body_too_large"
    ],
    ["a body that is cut", {}, { body: "cut" }, 400, "invalid_request_body"],
    ["a key that denies", { deny: true }, {}, 403, "policy_denied"],
    ["a route that the key may not use", { allowed_routes: ["/v1/models"] }, {}, 403, "policy_denied"],
    ["a provider that the key may not use", { allowed_providers: ["compat"] }, {}, 403, "policy_denied"],
    [
      "a model that the key may not use",
      { allowed_models: ["small"] },
      { body: { model: "large" } },
      403,
      "policy_denied"
    ],
    ["streaming", { allow_streaming: false }, { body: { stream: true } }, 403, "policy_denied"],
    ["tools", { allow_tools: false }, { body: { tools: [{}] } }, 403, "policy_denied"],
    ["the hour", { allowed_hours_utc: [11] }, {}, 403, "policy_denied"],
    [
      "more input than the key may send",
      { max_input_tokens_per_request: 1 },
      { body: { user: "12345" } },
      403,
      "policy_denied"
    ],
    ["a dearer request than the key may make", { max_cost_per_request: 0.009 }, {}, 403, "policy_denied"],
    ["what exceeds RPM", { rpm_limit: 0 }, {}, 429, "rate_limit_exceeded"],
    ["what exceeds TPM", { tpm_limit: 0 }, { body: { user: "1" } }, 429, "token_rate_limit_exceeded"],
    ["what exceeds a day's requests", { max_requests_per_day: 0 }, {}, 429, "rate_limit_exceeded"],
    [
      "what exceeds a day's tokens",
      { max_tokens_per_day: 0 },
      { body: { user: "1" } },
      429,
      "token_rate_limit_exceeded"
    ],
    ["what exceeds a day's budget", { daily_budget_usd: 0 }, {}, 402, "budget_exceeded"],
    ["what exceeds a month's budget", { monthly_budget_usd: 0 }, {}, 402, "budget_exceeded"]
  ])("%s, with one record of status alone", ([, policy, request, status, code]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey(policy)
      const headers = [...key.headers, ...(request.headers ?? [])]
      const wire = yield* gateway.ask({ target: Proxy.chat, body: {}, ...request, headers })
      assert.deepStrictEqual([wire.status, codeOf(wire.text), wire.ending], [status, code, "whole"])
      assert.deepStrictEqual(gateway.sent, [])
      const [record, ...more] = yield* gateway.records
      assert.lengthOf(more, 0)
      assert.deepInclude(record, {
        status_code: status,
        error_code: code,
        key_id: key.id,
        cost_nanos: null,
        usage_source: "status_only",
        total_tokens: null
      })
    })
  )

  it.effect("a slow body after the route's timeout", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.configureRoute("chat-completions", { timeoutMs: 5000 }) })
      const key = yield* Proxy.issueKey()
      const wire = RecordingWire.make({ target: Proxy.chat, headers: key.headers, body: "stalls" }, gateway.journal)
      const asking = yield* Effect.forkChild(gateway.handle(wire))
      yield* Effect.repeat(Effect.yieldNow, { until: () => gateway.journal.includes("the body stalls") })
      wire.tooSlow()
      yield* Fiber.join(asking)
      assert.deepStrictEqual([wire.status, codeOf(wire.text)], [408, "request_body_timeout"])
      assert.include(wire.text, "within 5000 ms (timeout_ms of the route)")
    })
  )

  it.effect("a disabled route, in both modes, before it reads the body", () =>
    Effect.gen(function* () {
      for (const mode of ["managed_by_gateway", "direct_upstream_passthrough"]) {
        const gateway = yield* Proxy.make({
          configured: Proxy.configureRoute("chat-completions", { enabled: false, mode })
        })
        const key = yield* Proxy.issueKey()
        const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: "stalls" })
        assert.deepStrictEqual([wire.status, codeOf(wire.text), gateway.sent], [403, "disabled_route", []])
        assert.deepInclude((yield* gateway.records)[0], { status_code: 403, error_code: "disabled_route" })
      }
    })
  )

  it.effect("what it has no memory for, at once and with a time to come back", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ settings: { maxInflightBufferBytes: 10 } })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: '{"a":"xxxx"}' })
      assert.deepStrictEqual(
        [wire.status, codeOf(wire.text), wire.header("retry-after")],
        [503, "gateway_overloaded", "1"]
      )
      const small = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: '{"a":"x"}' })
      assert.strictEqual(small.status, 200)
    })
  )

  it.effect("more bodies at once than it may hold, and takes the next when one is through", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ settings: { maxBufferedRequests: 1 }, upstream: Upstream.hangs() })
      const key = yield* Proxy.issueKey()
      const request = { target: Proxy.chat, headers: key.headers, body: {} }
      const first = yield* Effect.forkChild(gateway.ask(request))
      yield* Effect.repeat(Effect.yieldNow, { until: () => gateway.sent.length === 1 })
      assert.strictEqual((yield* gateway.ask(request)).status, 503)
      yield* Fiber.interrupt(first)
      const third = yield* Effect.forkChild(gateway.ask(request))
      yield* Effect.repeat(Effect.yieldNow, { until: () => gateway.sent.length === 2 })
      yield* Fiber.interrupt(third)
    })
  )

  it.effect("in the shape of the caller's family, with id, reset and Retry-After", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey({ rpm_limit: 1 })
      const ask = (target: string) =>
        gateway.ask({ target, headers: [...key.headers, "x-request-id", "r-1"], body: {} })
      yield* ask(Proxy.chat)
      yield* TestClock.adjust("15500 millis")
      const [a, b] = [yield* ask(Proxy.chat), yield* ask(Proxy.messages)]
      const message =
        "The request would exceed rpm_limit of this key (1 requests a minute): 1 requests are used or reserved; the window resets at 2026-11-20T12:01:00.000Z."
      assert.deepStrictEqual(JSON.parse(a.text), {
        error: {
          message,
          type: "rate_limit_error",
          param: null,
          code: "rate_limit_exceeded",
          request_id: "r-1",
          retry_after_seconds: 45
        }
      })
      assert.deepStrictEqual(JSON.parse(b.text), {
        type: "error",
        error: { type: "rate_limit_error", message, code: "rate_limit_exceeded", retry_after_seconds: 45 },
        request_id: "r-1"
      })
      for (const wire of [a, b]) {
        const said = [
          "retry-after",
          "x-request-id",
          "content-type",
          "cache-control",
          "x-ratelimit-remaining-requests",
          "x-should-retry"
        ]
        assert.deepStrictEqual(said.map(wire.header), [
          "45",
          "r-1",
          "application/json",
          "private, no-store",
          "0",
          undefined
        ])
      }
      assert.deepStrictEqual([a.header("request-id"), b.header("request-id")], [undefined, "r-1"])
    })
  )

  it.effect("what fits again tomorrow: when, in the body alone, so that no client sits and waits for it", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey({ max_requests_per_day: 1 })
      yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
      assert.deepStrictEqual(
        [wire.status, wire.header("retry-after"), wire.header("x-should-retry")],
        [429, undefined, "false"]
      )
      assert.strictEqual(JSON.parse(wire.text).error.retry_after_seconds, 43_200)
    })
  )

  it.effect("what can never fit, and asks the client's SDK not to try again", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey({ tpm_limit: 2 })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { user: "123456789" } })
      assert.deepStrictEqual(
        [wire.status, wire.header("retry-after"), wire.header("x-should-retry")],
        [429, undefined, "false"]
      )
    })
  )

  it.effect("who may not ask, or not for this, and asks the client's SDK not to try again", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const poor = yield* Proxy.issueKey({ daily_budget_usd: 0.01 })
      yield* gateway.ask({ target: Proxy.chat, headers: poor.headers, body: {} })
      const denied = yield* Proxy.issueKey({ deny: true })
      const asked = [[], poor.headers, denied.headers]
      const wires = yield* Effect.forEach(asked, (headers) => gateway.ask({ target: Proxy.chat, headers, body: {} }))
      assert.deepStrictEqual(
        wires.map((wire) => [wire.status, wire.header("x-should-retry")]),
        [
          [401, "false"],
          [402, "false"],
          [403, "false"]
        ]
      )
    })
  )
})

type Unrecorded = [what: string, request: Partial<RecordingWire.ClientRequest>, status: number, code: ErrorCode]
type Recorded = [
  what: string,
  policy: { readonly [field: string]: unknown },
  request: Partial<RecordingWire.ClientRequest>,
  status: number,
  code: ErrorCode
]

const known = `rk_live_${"0".repeat(64)}`

const codeOf = (text: string): unknown => {
  const body: { readonly error: { readonly code: unknown } } = JSON.parse(text)
  return body.error.code
}
