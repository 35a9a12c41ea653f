import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../src/services/Database.ts"
import * as Proxy from "./Proxy.ts"
import type { ClientRequest } from "./RecordingWire.ts"
import * as Upstream from "./ScriptedUpstream.ts"

const payments = Proxy.registerService("payments", { allowed_methods: ["GET", "POST", "DELETE"] })
const json = ["content-type", "application/json"]
const formOf = (body: string): Partial<ClientRequest> => ({
  body,
  headers: ["content-type", "application/x-www-form-urlencoded"]
})

layer(Proxy.database)("ProxyApp, to registered services", (it) => {
  it.effect.each(["fail_closed", "fail_open"] as const)(
    "guardrails look at JSON of any form and under any name; a body that is none goes by their policy: %s",
    (failurePolicy) =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const gateway = yield* Proxy.make({
          configured: Effect.andThen(
            sql`UPDATE guardrail_definitions SET failure_policy = ${failurePolicy}`,
            Proxy.registerService("payments", {
              pricing_rules: JSON.stringify([
                { name: null, json_pointer: "/tier", equals: "a", cost_mode: "fixed", estimated_cost_usd: 0.5 }
              ])
            })
          ),
          upstream: Upstream.answers(200, json, '{"mail":', '"jane@example.com"}')
        })
        const key = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails: ["pii-redact"] } })
        const outcome = (headers: ReadonlyArray<string>, body: string) =>
          Effect.gen(function* () {
            const target = "/services/payments/charges"
            const wire = yield* gateway.ask({ target, headers: [...key.headers, ...headers], body })
            return wire.status === 200 ? [wire.text, gateway.sent.at(-1)?.text] : [wire.status, codeOf(wire.text)]
          })
        const text = ["content-type", "text/plain"]
        const form = ["content-type", "multipart/form-data; boundary=b"]
        const parts = ["--b", 'content-disposition: form-data; name="tier"', "", "a@b.example", "--b--", ""].join(
          "\r\n"
        )
        const plain = 'say "john@example.com"'
        const redacted = (kind: string) => `{"mail":"[EMAIL_${kind}]"}`
        const unread = (body: string) =>
          failurePolicy === "fail_closed" ? [502, "guardrail_unavailable"] : [redacted("1"), body]
        assert.deepStrictEqual(
          [
            yield* outcome(json, '["john@example.com"]'),
            yield* outcome(json, '"john@example.com"'),
            yield* outcome([], '{"to":"john@example.com"}'),
            yield* outcome(text, '{"to":"john@example.com"}'),
            yield* outcome(["content-type", "application/octet-stream"], ' ["john@example.com"]'),
            yield* outcome([], ""),
            yield* outcome(text, plain),
            yield* outcome([], plain),
            yield* outcome(form, parts),
            yield* outcome(text, '{"to":"john@example.com"} {}'),
            yield* outcome([...text, "content-encoding", "gzip"], '{"to":"john@example.com"}')
          ],
          [
            [redacted("2"), '["[EMAIL_1]"]'],
            [redacted("2"), '"[EMAIL_1]"'],
            [redacted("2"), '{"to":"[EMAIL_1]"}'],
            [redacted("2"), '{"to":"[EMAIL_1]"}'],
            [redacted("2"), ' ["[EMAIL_1]"]'],
            [redacted("1"), ""],
            unread(plain),
            unread(plain),
            unread(parts),
            [400, "invalid_request_body"],
            [415, "unsupported_media_type"]
          ]
        )
        const noted = (yield* gateway.records).flatMap(({ guardrails }) =>
          (guardrails ?? []).filter(({ mode, reason }) => mode === "pre_call" && reason === "not_json")
        )
        assert.deepStrictEqual(
          noted.map(({ action }) => action),
          Array.from({ length: 3 }, () => (failurePolicy === "fail_closed" ? "block" : "warn"))
        )
      })
  )

  it.effect.each<[string, { readonly [field: string]: unknown }, Partial<ClientRequest>, number]>([
    ["a model", { allowed_models: ["a"] }, { body: { model: "b" } }, 403],
    ["a stream", { allow_streaming: false }, { body: { stream: true } }, 403],
    ["tools", { allow_tools: false }, { body: { tools: [{}] } }, 403],
    ["too many tools", { max_tool_call_count: 1 }, { body: { tools: [{}, {}] } }, 403],
    ["tools that are too long", { max_tool_schema_bytes: 1 }, { body: { tools: [{}] } }, 403],
    ["too much output", { max_output_tokens_per_request: 5 }, { body: { max_tokens: 6 } }, 403],
    ["what a lenient reader could take for a model", { allowed_models: ["a"] }, { body: '\ufeff{"model":"b"}' }, 400],
    ["the same on a line of its own", { allowed_models: ["a"] }, { body: '{"n":1}\n{"model":"b"}' }, 400],
    ["what is in an encoding", { allowed_models: ["a"] }, { headers: ["content-encoding", "gzip"] }, 415]
  ])("a content type does not get %s past a policy", ([, policy, request, status]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: payments })
      const key = yield* Proxy.issueKey(policy)
      const { headers = [], ...rest } = request
      for (const type of [["content-type", "text/plain"], ["content-type", "multipart/form-data; boundary=b"], []]) {
        const wire = yield* gateway.ask({
          target: "/services/payments/x",
          body: { model: "b" },
          ...rest,
          headers: [...key.headers, ...type, ...headers]
        })
        assert.strictEqual(wire.status, status, wire.text)
      }
      assert.deepStrictEqual(gateway.sent, [])
      const form = ["--b", 'content-disposition: form-data; name="model"', "", "b", "--b--", ""].join("\r\n")
      const headersOfForm = [...key.headers, "content-type", "multipart/form-data; boundary=b"]
      const named = yield* gateway.ask({ target: "/services/payments/x", headers: headersOfForm, body: form })
      assert.strictEqual(named.status, "allowed_models" in policy ? 403 : 200, named.text)
      const text = "no model is in here"
      const headersOfText = [...key.headers, "content-type", "text/plain"]
      const wire = yield* gateway.ask({ target: "/services/payments/x", headers: headersOfText, body: text })
      assert.deepStrictEqual([wire.status, gateway.sent.at(-1)?.text], [200, text])
    })
  )

  const urlencoded = ["content-type", "application/x-www-form-urlencoded"]
  const multipart = ["content-type", "multipart/form-data; boundary=b"]
  const megabyte = 1_048_576
  it.effect.each<[string, ReadonlyArray<string>, string, RegExp]>([
    ["names without a value", urlencoded, "a&".repeat(megabyte / 2), /more than 1000 fields/],
    [
      "a head full of blanks",
      multipart,
      `--b\r\ncontent-disposition: x${" ".repeat(megabyte)}y\r\n\r\n\r\n--b--`,
      /larger than 8192 bytes/
    ],
    [
      "parts",
      multipart,
      `${'--b\r\ncontent-disposition: form-data; name="x"\r\n\r\n\r\n'.repeat(18_000)}--b--`,
      /more than 1000 fields/
    ]
  ])("a form of a megabyte of %s is refused at once, by the limit that it passes", ([, type, body, message]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: payments })
      const key = yield* Proxy.issueKey({ allow_tools: false })
      const wire = yield* gateway.ask({ target: "/services/payments/x", headers: [...key.headers, ...type], body })
      assert.strictEqual(wire.status, 400)
      assert.match(wire.text, message)
      assert.include(wire.text, "invalid_request_body")
      assert.deepStrictEqual(gateway.sent, [])
    })
  )

  it.effect("JSON that holds more than the gateway reads goes nowhere, whatever its content type says", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: payments })
      const key = yield* Proxy.issueKey()
      const nested = `${"[".repeat(257)}${"]".repeat(257)}`
      for (const type of [["content-type", "application/json"], []]) {
        const headers = [...key.headers, ...type]
        const wire = yield* gateway.ask({ target: "/services/payments/x", headers, body: nested })
        assert.strictEqual(wire.status, 400)
        assert.match(wire.text, /deeper than 256 levels/)
      }
      assert.deepStrictEqual(gateway.sent, [])
      const binary = `x${nested}`
      yield* gateway.ask({ target: "/services/payments/x", headers: key.headers, body: binary })
      assert.strictEqual(gateway.sent[0]?.text, binary)
    })
  )

  it.effect("a body that does not say how long it is, is read where input is limited", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: payments })
      const key = yield* Proxy.issueKey({ max_input_tokens_per_request: 10 })
      const ask = (length: ReadonlyArray<string>, body: string) =>
        gateway.ask({
          target: "/services/payments/x",
          headers: [...key.headers, "content-type", "text/plain", ...length],
          body
        })
      const chunked = ["transfer-encoding", "chunked"]
      const long = "x".repeat(1_000)
      assert.strictEqual((yield* ask(["content-length", "1000"], long)).status, 403)
      assert.strictEqual((yield* ask(chunked, long)).status, 403)
      assert.strictEqual((yield* ask(chunked, "x")).status, 200)
      assert.strictEqual(gateway.sent.length, 1)
    })
  )

  it.effect("a content type does not get a model past its layer, nor a body past its price", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const gateway = yield* Proxy.make({
        configured: Effect.all([
          payments,
          Proxy.registerService("paid", {
            cost_mode: "fixed",
            estimated_cost_usd: 0.5,
            pricing_rules: JSON.stringify([
              { name: null, json_pointer: "/size", equals: "l", cost_mode: "fixed", estimated_cost_usd: 2 }
            ])
          }),
          sql`INSERT INTO policy_layers (layer_kind, scope_id, policy, guardrail_policy)
            VALUES ('model', 'b', '{"deny":true}', '{}')`
        ])
      })
      const key = yield* Proxy.issueKey()
      const ask = (target: string, body: object) =>
        gateway.ask({ target, headers: [...key.headers, "content-type", "text/plain"], body })
      const denied = yield* ask("/services/payments/x", { model: "b" })
      yield* sql`DELETE FROM policy_layers`
      assert.strictEqual(denied.status, 403)
      assert.strictEqual((yield* ask("/services/paid/x", { size: "l" })).status, 200)
      assert.deepInclude((yield* gateway.records).at(-1), { cost_nanos: 2_000_000_000 })
    })
  )

  it.effect("forwards what is behind the prefix, byte for byte, with the service's credential and nobody else's", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: payments,
        upstream: Upstream.answers(201, ["Content-Type", "text/plain", "X-Own", "1"], "done")
      })
      const key = yield* Proxy.issueKey({}, { project: true })
      const wire = yield* gateway.ask({
        target: "/services/%70ayments/charges/%7Ea?trace=1&p=/../x",
        headers: [
          ...key.headers,
          ...json,
          ...["X-Api-Key", "client", "x-svc-service", "forged", "X-Svc-Key-Id", "forged", "cookie", "c=1"],
          ...["x-request-id", "r-1"]
        ],
        body: '{ "amount" : 5 }'
      })
      const [sent, ...more] = gateway.sent
      assert.lengthOf(more, 0)
      assert.deepInclude(sent, {
        origin: "https://payments.test",
        method: "POST",
        target: "/charges/%7Ea?trace=1&p=/../x",
        text: '{ "amount" : 5 }',
        headersWithinMs: 60_000,
        idleWithinMs: 60_000
      })
      assert.deepStrictEqual(sent?.headers, [
        ...["content-type", "application/json", "cookie", "c=1", "x-request-id", "r-1"],
        ...["authorization", "Bearer payments-secret", "accept-encoding", "identity"],
        ...["x-svc-request-id", "r-1", "x-svc-key-id", key.id, "x-svc-project-id", key.projectId ?? ""],
        ...["x-svc-service", "payments"]
      ])
      assert.deepStrictEqual([wire.status, wire.text, wire.header("x-own")], [201, "done", "1"])
    })
  )

  it.effect("records the service, its endpoint and its price", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.registerService("jobs", {
          cost_mode: "fixed",
          estimated_cost_usd: 0.5,
          openapi_endpoints: JSON.stringify([
            { method: "POST", path_template: "/jobs/{id}", operation_id: null, summary: null, svc_default: false }
          ]),
          pricing_rules: JSON.stringify([
            { name: "large", json_pointer: "/size", equals: "l", cost_mode: "fixed", estimated_cost_usd: 2 }
          ])
        })
      })
      const key = yield* Proxy.issueKey()
      const ask = (body: string | object) =>
        gateway.ask({ target: "/services/jobs/jobs/%37?q=secret", headers: [...key.headers, ...json], body })
      yield* ask({ size: "l", model: "tiny" })
      yield* ask({ size: "m" })
      yield* ask("[1]")
      const records = yield* gateway.records
      assert.deepInclude(records[0], {
        route: "/services/*",
        provider: "internal-service",
        model: "tiny",
        status_code: 200,
        usage_source: "status_only",
        input_tokens: null,
        total_tokens: null,
        service_name: "jobs",
        http_method: "POST",
        endpoint_path: "/jobs/7",
        endpoint_template: "/jobs/{id}",
        cost_mode: "fixed",
        cost_source: "service_pricing_rule_fixed",
        pricing_rule_name: "large",
        cost_nanos: 2_000_000_000
      })
      for (const record of records.slice(1)) {
        assert.deepInclude(record, {
          cost_source: "service_default_fixed",
          cost_nanos: 500_000_000,
          pricing_rule_name: null
        })
      }
    })
  )

  it.effect("takes the price from the answer of a service that says it, and its tokens", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.registerService("llm", { cost_mode: "passthrough" }),
        upstream: Upstream.json({ usage: { input_tokens: 7, output_tokens: 5, total_cost: 0.25 } })
      })
      const key = yield* Proxy.issueKey()
      yield* gateway.ask({ target: "/services/llm", headers: [...key.headers, ...json], body: {} })
      const [record] = yield* gateway.records
      assert.deepInclude(record, {
        endpoint_path: "/",
        usage_source: "reported",
        input_tokens: 7,
        output_tokens: 5,
        total_tokens: 12,
        cost_nanos: 250_000_000,
        cost_source: "service_default_passthrough",
        cost_mode: "passthrough"
      })
    })
  )

  it.effect("says that a price is missing, and charges nothing for what failed", () =>
    Effect.gen(function* () {
      let status = 200
      const gateway = yield* Proxy.make({
        configured: Effect.andThen(
          Proxy.registerService("llm", { cost_mode: "passthrough" }),
          Proxy.registerService("paid", { cost_mode: "fixed", estimated_cost_usd: 1 })
        ),
        upstream: (sink, request) => Upstream.json({}, status)(sink, request)
      })
      const key = yield* Proxy.issueKey()
      yield* gateway.ask({ target: "/services/llm", headers: [...key.headers, ...json], body: {} })
      status = 422
      yield* gateway.ask({ target: "/services/paid", headers: [...key.headers, ...json], body: {} })
      const [unknown, failed] = yield* gateway.records
      assert.deepInclude(unknown, { cost_nanos: null, cost_source: "missing_upstream_cost" })
      assert.deepInclude(failed, { status_code: 422, cost_nanos: null, cost_source: "none", cost_mode: "fixed" })
    })
  )

  it.effect("prices a form by its fields, and forwards it as it came", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.registerService("ocr", {
          route_pattern: "/ocr",
          cost_mode: "fixed",
          estimated_cost_usd: 0.5,
          pricing_rules: JSON.stringify([
            { name: null, json_pointer: "/quality", equals: "best", cost_mode: "fixed", estimated_cost_usd: 2 }
          ])
        })
      })
      const key = yield* Proxy.issueKey()
      const headers = [...key.headers, "content-type", "multipart/form-data; boundary=xyz"]
      const field = '--xyz\r\ncontent-disposition: form-data; name="quality"\r\n\r\nbest\r\n'
      const body = `${field}--xyz--\r\n`
      yield* gateway.ask({ target: "/ocr?lang=de", headers, body })
      const twice = yield* gateway.ask({ target: "/ocr", headers, body: field + body })
      assert.deepStrictEqual([gateway.sent[0]?.target, gateway.sent[0]?.text], ["/ocr?lang=de", body])
      assert.deepStrictEqual([twice.status, gateway.sent.length], [400, 1])
      const [record, refused] = yield* gateway.records
      assert.deepInclude(record, { route: "/ocr", service_name: "ocr", cost_nanos: 2_000_000_000 })
      assert.deepInclude(refused, { status_code: 400, error_code: "invalid_request_body", service_name: "ocr" })
    })
  )

  const byEndpointAndSize = Proxy.registerService("paid", {
    cost_mode: "fixed",
    estimated_cost_usd: 0.01,
    endpoint_pricing_rules: JSON.stringify([
      { method: "POST", path_template: "/jobs", operation_id: null, cost_mode: "fixed", estimated_cost_usd: 2 },
      { method: "POST", path_template: "/jobs/{id}", operation_id: null, cost_mode: "fixed", estimated_cost_usd: 0.01 },
      { method: "POST", path_template: "/jobs/large", operation_id: null, cost_mode: "fixed", estimated_cost_usd: 2 }
    ]),
    pricing_rules: JSON.stringify([
      { name: null, json_pointer: "/options/size", equals: "l", cost_mode: "fixed", estimated_cost_usd: 3 },
      { name: null, json_pointer: "/items/0/size", equals: "l", cost_mode: "fixed", estimated_cost_usd: 4 }
    ])
  })

  it.effect.each(
    "/jobs/ /Jobs /jobs%20 /jobs/Large /jobs/large/ /jobs/%4carge /jobs/large%E2%80%8B /j%EF%BD%8Fbs /jobs.".split(" ")
  )("refuses a path that a lax service may take for one with another price: %s", (path) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: byEndpointAndSize })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: `/services/paid${path}`, headers: key.headers, body: {} })
      assert.deepStrictEqual([wire.status, JSON.parse(wire.text).error.code], [404, "unsupported_route"], wire.text)
      assert.deepStrictEqual(gateway.sent, [])
    })
  )

  it.effect.each([
    ["/jobs", 2],
    ["/jo%62s", 2],
    ["/jobs/Seven.", 0.01],
    ["/jobs/large", 2],
    ["/jobs/la%20rge", 0.01],
    ["/elsewhere/", 0.01]
  ] as const)("takes any other path: %s", ([path, dollars]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: byEndpointAndSize })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: `/services/paid${path}`, headers: key.headers, body: {} })
      assert.strictEqual(wire.status, 200, wire.text)
      assert.deepInclude((yield* gateway.records)[0], { cost_nanos: dollars * 1e9 })
    })
  )

  it.effect.each<[what: string, request: Partial<ClientRequest>, dollars: number | undefined]>([
    ["the price's", { body: { options: { size: "l" } } }, 3],
    ["the price's, in a list", { body: { items: [{ size: "l" }] } }, 4],
    ["twice", { body: '{"options":{"size":"s","size":"l"}}' }, undefined],
    ["twice, in a list", { body: '{"items":[{"size":"s","size":"l"},{}]}' }, undefined],
    [
      "twice beside the price's way",
      { body: '{"options":{"x":{"a":1,"a":2}},"items":[{},{"size":1,"size":2}]}' },
      0.01
    ],
    ["in another letter case", { body: '{"options":{"Size":"l"}}' }, undefined],
    ["in another letter case above", { body: '{"OPTIONS":{"size":"l"}}' }, undefined],
    ["with escapes", { body: '{"options":{"s\\u0069ze":"s"}}' }, undefined],
    ["in the query", { target: "/services/paid/x?options[size]=l", body: {} }, undefined],
    ["in a field with brackets", formOf("options[size]=l"), undefined],
    ["in a field with a dot", formOf("options.size=l"), undefined],
    ["in a field of JSON", formOf("options=%7B%22size%22%3A%22l%22%7D"), undefined],
    ["in no field", formOf("other=l"), 0.01]
  ])("a price hangs on a member that all read alike: %s", ([, request, dollars]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: byEndpointAndSize })
      const key = yield* Proxy.issueKey()
      const headers = [...key.headers, ...(request.headers ?? json)]
      const wire = yield* gateway.ask({ target: "/services/paid/x", ...request, headers })
      if (dollars === undefined) {
        assert.deepStrictEqual([wire.status, JSON.parse(wire.text).error.code], [400, "invalid_request_body"])
        assert.deepStrictEqual(gateway.sent, [])
      } else {
        assert.strictEqual(wire.status, 200, wire.text)
        assert.deepInclude((yield* gateway.records)[0], { cost_nanos: dollars * 1e9 })
      }
    })
  )

  it.effect("streams through what nobody decides on, and counts its length", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.registerService("files", { max_body_bytes: 1000 }),
        settings: { maxBufferedRequests: 1, maxInflightBufferBytes: 1 }
      })
      const key = yield* Proxy.issueKey({ tpm_limit: 100 })
      const send = (length: number, declared: ReadonlyArray<string> = ["content-length", String(length)]) =>
        gateway.ask({
          target: "/services/files/f",
          headers: [...key.headers, "content-type", "application/pdf", ...declared],
          body: "x".repeat(length)
        })
      const first = yield* send(200)
      assert.deepStrictEqual([first.status, gateway.sent[0]?.text.length], [200, 200])
      // its 50 tokens are used; another 60 do not fit, and 401 bytes never would
      assert.strictEqual((yield* send(240)).status, 429)
      assert.include((yield* send(404)).text, "can never fit")
      assert.strictEqual((yield* send(1001)).status, 413)
      assert.strictEqual((yield* send(1001, [])).status, 429)
      assert.strictEqual(gateway.sent.length, 1)
    })
  )

  it.effect("passes each event on at once: what ends a model's stream need not end this one", () =>
    Effect.gen(function* () {
      const turns = ["one", "two"].map((turn) => `data: ${turn}\n\nevent: message_stop\ndata: {}\n\n`)
      const gateway = yield* Proxy.make({
        upstream: Upstream.events(...turns),
        configured: Proxy.registerService("agent")
      })
      const key = yield* Proxy.issueKey({ rpm_limit: 5 })
      yield* gateway.ask({ target: "/services/agent/turns", headers: key.headers, body: {} })
      const passed = turns.map((turn) => `write ${turn}`)
      assert.deepStrictEqual(gateway.journal, ["admission", "head 200", ...passed, "settlement", "end"])
    })
  )

  it.effect("cuts off a stream that is longer than the service takes, and says so", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: Proxy.registerService("files", { max_body_bytes: 1000 }) })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({
        target: "/services/files/f",
        headers: [...key.headers, "content-type", "application/pdf"],
        body: "x".repeat(1001)
      })
      assert.strictEqual(wire.status, 413)
      assert.include(wire.text, "request_body_too_large")
      const [record] = yield* gateway.records
      assert.deepInclude(record, { status_code: 413, error_code: "request_body_too_large" })
    })
  )

  it.effect("sends no body where there is none", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: payments })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ method: "GET", target: "/services/payments/list", headers: key.headers })
      assert.strictEqual(wire.status, 200)
      assert.deepInclude(gateway.sent[0], { method: "GET", text: "" })
    })
  )

  it.effect.each<[string, { readonly [field: string]: unknown }, Partial<ClientRequest>, number, string]>([
    ["a body that is no JSON and says that it is", {}, { body: "{" }, 400, "invalid_request_body"],
    ["a body that two readers could read differently", {}, { body: '{"a":1,"a":2}' }, 400, "invalid_request_body"],
    ["a body in an encoding", {}, { headers: ["content-encoding", "gzip"] }, 415, "unsupported_media_type"],
    ["what may be JSON or not", {}, { headers: ["content-type", "text/plain"] }, 415, "unsupported_media_type"],
    ["what the policy denies: the provider", { allowed_providers: ["upstream"] }, {}, 403, "policy_denied"],
    ["what the policy denies: the route", { allowed_routes: ["/v1/models"] }, {}, 403, "policy_denied"],
    ["what the policy denies: the service", { allowed_services: ["other"] }, {}, 403, "policy_denied"],
    ["what the policy denies: a stream", { allow_streaming: false }, { body: { stream: true } }, 403, "policy_denied"],
    ["what the policy denies: a model", { allowed_models: ["a"] }, { body: { model: "b" } }, 403, "policy_denied"],
    ["what costs too much", { max_cost_per_request: 0.4 }, {}, 403, "policy_denied"],
    ["what the budget has no room for", { daily_budget_usd: 0.4 }, {}, 402, "budget_exceeded"],
    ["one request too many", { rpm_limit: 0 }, {}, 429, "rate_limit_exceeded"],
    ["what is too long for the key", { max_request_body_bytes: 3 }, { body: { a: 1 } }, 413, "request_body_too_large"]
  ])("refuses %s, on the record", ([, policy, request, status, code]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.registerService("paid", { cost_mode: "fixed", estimated_cost_usd: 0.5 })
      })
      const key = yield* Proxy.issueKey(policy)
      const { headers = [], ...rest } = request
      const wire = yield* gateway.ask({
        target: "/services/paid/x",
        body: {},
        ...rest,
        headers: [...key.headers, ...json, ...headers]
      })
      assert.strictEqual(wire.status, status, wire.text)
      assert.include(wire.text, code)
      const [record] = yield* gateway.records
      assert.deepInclude(record, { status_code: status, error_code: code, service_name: "paid", cost_nanos: null })
      assert.deepStrictEqual(gateway.sent, [])
    })
  )

  it.effect.each([
    ["/services/nothing", 404, "missing_service"],
    ["/services/No_Name", 400, "invalid_service_payload"],
    ["/services/off/x", 403, "disabled_service"],
    ["/services/half/x", 409, "incomplete_service"],
    ["/services/get-only/x", 404, "unsupported_route"]
  ] as const)("tells nobody but a known key that %s is %s %s, and keeps no record", ([target, status, code]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Effect.all([
          Proxy.registerService("off", { enabled: false }),
          Proxy.registerService("half", { sealed_credential: null }),
          Proxy.registerService("get-only", { allowed_methods: ["GET"] })
        ])
      })
      const key = yield* Proxy.issueKey()
      assert.strictEqual((yield* gateway.ask({ target, headers: json, body: {} })).status, 401)
      const wire = yield* gateway.ask({ target, headers: [...key.headers, ...json], body: {} })
      assert.strictEqual(wire.status, status)
      assert.include(wire.text, code)
      assert.deepStrictEqual([yield* gateway.records, gateway.sent], [[], []])
    })
  )

  it.effect("a credential that cannot be opened is not replaced by another", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.registerService("sealed", { sealed_credential: "v1.other.x.y" })
      })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: "/services/sealed", headers: [...key.headers, ...json], body: {} })
      assert.deepStrictEqual([wire.status, gateway.sent], [500, []])
      assert.include(wire.text, "invalid_configuration")
    })
  )

  it.effect.each(["/key/*", "/v1/embeddings", "/user/info", "/services", "/admin-ui/*", "/Ser vices"])(
    "a pattern in the database that nobody could save, %s, takes no path; the service is where it always is",
    (route_pattern) =>
      Effect.gen(function* () {
        const gateway = yield* Proxy.make({ configured: Proxy.registerService("old", { route_pattern }) })
        const key = yield* Proxy.issueKey()
        const request = { headers: [...key.headers, ...json], body: {} }
        const own = route_pattern.replace("*", "info")
        yield* gateway.ask({ ...request, target: own })
        const always = yield* gateway.ask({ ...request, target: "/services/old/x" })
        assert.strictEqual(always.status, 200)
        const toService = gateway.sent.filter(({ origin }) => origin === "https://old.test")
        assert.deepStrictEqual(
          toService.map(({ target }) => target),
          ["/x"]
        )
      })
  )

  it.effect("links decide before the policy does: a project's for its keys, a key's for itself", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Effect.andThen(Proxy.registerService("a"), Proxy.registerService("b"))
      })
      const { sql } = yield* Database
      const policy = { allowed_services: ["b"], allowed_routes: ["/v1/models"] }
      const own = yield* Proxy.issueKey(policy)
      const projects = yield* Proxy.issueKey(policy, { project: true })
      yield* sql`INSERT INTO key_service_links (key_id, service_name) VALUES (${own.id}, 'a')`
      yield* sql`INSERT INTO project_service_links (project_id, service_name) VALUES (${projects.projectId}, 'b')`
      const unlinked = yield* Proxy.issueKey()
      const status = (key: Proxy.IssuedKey, name: string) =>
        Effect.map(
          gateway.ask({ target: `/services/${name}`, headers: [...key.headers, ...json], body: {} }),
          ({ status }) => status
        )
      assert.deepStrictEqual(
        yield* Effect.all([
          status(own, "a"),
          status(own, "b"),
          status(projects, "a"),
          status(projects, "b"),
          status(unlinked, "a")
        ]),
        [200, 403, 403, 200, 200]
      )
    })
  )

  it.effect("holds a budget with the price, and settles it", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.registerService("paid", { cost_mode: "fixed", estimated_cost_usd: 0.5 })
      })
      const key = yield* Proxy.issueKey({ daily_budget_usd: 1.2 })
      const ask = gateway.ask({ target: "/services/paid", headers: [...key.headers, ...json], body: {} })
      const statuses = yield* Effect.all([ask, ask, ask]).pipe(Effect.map((wires) => wires.map(({ status }) => status)))
      assert.deepStrictEqual(statuses, [200, 200, 402])
    })
  )
})

const codeOf = (text: string) => /"code":"(\w+)"/.exec(text)?.[1]
