import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { AuditChain } from "../../src/control/audit/AuditChain.ts"
import { Database } from "../../src/services/Database.ts"
import * as Changes from "../../src/state/Changes.ts"
import * as Proxy from "./Proxy.ts"
import * as Upstream from "./ScriptedUpstream.ts"

interface Layered {
  readonly kind: "global" | "project" | "team" | "route" | "model"
  readonly scope?: string | null
  readonly policy: object
}

/** Layers as control would have made them. */
const layers = (...made: ReadonlyArray<Layered>) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    yield* sql`DELETE FROM policy_layers`
    for (const { kind, policy, scope = null } of made) {
      yield* sql`INSERT INTO policy_layers (layer_kind, scope_id, policy, policy_version)
        VALUES (${kind}, ${scope}, ${JSON.stringify(policy)}::jsonb, 7)`
    }
    yield* Changes.publish({ _tag: "Configuration" })
  })

const codeOf = (wire: { readonly text: string }): unknown => JSON.parse(wire.text).error?.code

layer(Proxy.database)("ProxyApp, under layers of policy", (it) => {
  it.effect.each<[string, string, string]>([
    [Proxy.chat, '{ "model":"large" }', '{"max_completion_tokens":40, "model":"large" }'],
    [Proxy.chat, '{"n":3}', '{"max_completion_tokens":13,"n":3}'],
    [Proxy.chat, '{"max_completion_tokens":null}', '{"max_completion_tokens":40}'],
    [Proxy.chat, '{"max_tokens":7}', '{"max_tokens":7}'],
    [Proxy.chat, '{"max_output_tokens":1}', '{"max_completion_tokens":40,"max_output_tokens":1}'],
    ["/v1/responses", '{"max_tokens":1}', '{"max_output_tokens":40,"max_tokens":1}'],
    ["/v1/responses", '{"model":"large"}', '{"max_output_tokens":40,"model":"large"}'],
    [Proxy.messages, '{"model":"large"}', '{"max_tokens":40,"model":"large"}'],
    ["/v1/embeddings", '{"input":"a"}', '{"input":"a"}'],
    ["/v1/messages/count_tokens", '{"messages":[]}', '{"messages":[]}']
  ])("%s %s: what a request leaves open is bounded by max_output_tokens_per_request", ([target, body, forwarded]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: layers() })
      const key = yield* Proxy.issueKey({ max_output_tokens_per_request: 40 })
      const wire = yield* gateway.ask({ target, headers: key.headers, body })
      assert.deepStrictEqual([wire.status, gateway.sent[0]?.text], [200, forwarded], wire.text)
    })
  )

  it.effect.each<[string, Layered, ReadonlyArray<number>]>([
    ["of a route counts what it counted: that route", { kind: "route", scope: Proxy.chat, policy: {} }, [200, 402]],
    ["of a model counts what it counted: that model", { kind: "model", scope: "large", policy: {} }, [200, 402]],
    ["of everybody counts all", { kind: "global", policy: {} }, [402, 402]]
  ])("a budget that is lost with Redis and is set by the layer %s", ([, layer, expected]) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* Proxy.make({ configured: layers({ ...layer, policy: { daily_budget_usd: 1 } }) })
      const key = yield* Proxy.issueKey()
      const spent = (route: string, model: string, nanos: number) =>
        sql`INSERT INTO usage_events (id, created_at, request_id, key_id, route, model, provider, status, status_code,
          latency_ms, usage_source, cost_nanos, cost_source, streamed) VALUES (gen_random_uuid(),
          ${new Date(Proxy.noon - 1000)}, 'r', ${key.id}, ${route}, ${model}, 'upstream', 'success', 200, 1, 'reported',
          ${nanos}, 'price_table', false)`
      yield* spent("/v1/embeddings", "small", 900_000_000)
      const statuses: Array<number | undefined> = []
      for (const nanos of [200_000_000, 800_000_000]) {
        yield* spent(Proxy.chat, "large", nanos)
        const gateway = yield* Proxy.restarted()
        const request = { target: Proxy.chat, headers: key.headers, body: { model: "large" } }
        statuses.push((yield* gateway.ask(request)).status)
      }
      assert.deepStrictEqual<ReadonlyArray<number | undefined>>(statuses, expected)
    })
  )

  it.effect.each<[target: string, param: string]>([
    [`${Proxy.chat}?model=dear`, "model"],
    [`${Proxy.chat}?a=1&%6dodel[]=dear`, "model"],
    [`${Proxy.chat}?%5Bmodel%5D=dear`, "model"],
    [`${Proxy.messages}?beta=true;STREAM=true`, "stream"],
    ["/v1/responses?max_output_tokens=9", "max_output_tokens"],
    ["/providers/compat/v1/audio/speech?model=dear", "model"]
  ])("%s: what a policy decides on is said in the body alone", ([target, param]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: layers() })
      const key = yield* Proxy.issueKey({ allowed_models: ["cheap"] })
      const wire = yield* gateway.ask({ target, headers: key.headers, body: { model: "cheap" } })
      assert.deepStrictEqual([wire.status, codeOf(wire), gateway.sent], [400, "invalid_request_body", []])
      assert.include(wire.text, `Send \\"${param}\\" in the body`)
      assert.deepInclude((yield* gateway.records)[0], { error_code: "invalid_request_body" })
    })
  )

  it.effect("other parameters of a query go on as they came", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: layers() })
      const key = yield* Proxy.issueKey()
      const target = `${Proxy.messages}?beta=true&models=a&x=%20model`
      yield* gateway.ask({ target, headers: key.headers, body: {} })
      assert.strictEqual(gateway.sent[0]?.target, target)
    })
  )

  it.effect("more answers than a policy allows tokens are denied, and so is any when it allows none", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: layers() })
      const status = (most: number, body: object, target = Proxy.chat) =>
        Effect.gen(function* () {
          const key = yield* Proxy.issueKey({ max_output_tokens_per_request: most })
          const wire = yield* gateway.ask({ target, headers: key.headers, body })
          return [wire.status, wire.status === 200 ? undefined : codeOf(wire)]
        })
      const denied = [403, "policy_denied"]
      assert.deepStrictEqual(
        [yield* status(2, { n: 3 }), yield* status(0, {}), yield* status(0, { input: "a" }, "/v1/embeddings")],
        [denied, denied, [200, undefined]]
      )
    })
  )

  it.effect(
    "denies by the layer of everybody, of the project, the team, the route and the model, and says whose it was",
    () =>
      Effect.gen(function* () {
        const gateway = yield* Proxy.make({ configured: layers() })
        const { sql } = yield* Database
        const key = yield* Proxy.issueKey({}, { project: true })
        yield* sql`UPDATE api_keys SET team_id = 'blue' WHERE id = ${key.id}`
        const scopes: ReadonlyArray<Omit<Layered, "policy">> = [
          { kind: "global" },
          { kind: "project", scope: key.projectId },
          { kind: "team", scope: "blue" },
          { kind: "route", scope: Proxy.chat },
          { kind: "model", scope: "large" }
        ]
        for (const scope of scopes) {
          yield* layers({ ...scope, policy: { allowed_hours_utc: [3] } })
          const { ask, records } = yield* Proxy.restarted()
          const wire = yield* ask({ target: Proxy.chat, headers: key.headers, body: { model: "large" } })
          assert.deepStrictEqual([wire.status, codeOf(wire)], [403, "policy_denied"], scope.kind)
          const [record] = yield* records
          assert.deepInclude(record, {
            policy_version: 7,
            denial: { check: "hours", layer: scope.scope == null ? "global" : `${scope.kind}:${scope.scope}` }
          })
          // what is about others leaves this one alone
          yield* layers({
            ...scope,
            scope: scope.kind === "global" ? null : "other",
            policy: scope.kind === "global" ? {} : { deny: true }
          })
          const other = yield* Proxy.restarted()
          assert.strictEqual(
            (yield* other.ask({ target: Proxy.chat, headers: key.headers, body: { model: "large" } })).status,
            200
          )
        }
        assert.isEmpty(gateway.sent)
      })
  )

  it.effect("layers take away and never give: lists intersect, and the key's own denial stays", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: layers({ kind: "global", policy: { allowed_models: ["small", "large"], allow_tools: true } })
      })
      const key = yield* Proxy.issueKey({ allowed_models: ["large", "huge"], allow_tools: false })
      const ask = (body: object) =>
        Effect.map(gateway.ask({ target: Proxy.chat, headers: key.headers, body }), ({ status }) => status)
      assert.deepStrictEqual(
        [
          yield* ask({ model: "large" }),
          yield* ask({ model: "small" }),
          yield* ask({ model: "huge" }),
          yield* ask({ model: "large", tools: [{}] })
        ],
        [200, 403, 403, 403]
      )
      const denials = (yield* gateway.records).map(({ denial }) => denial)
      assert.deepStrictEqual(denials, [
        null,
        { check: "model", layer: "key" },
        { check: "model", layer: "global" },
        { check: "tools", layer: "key" }
      ])
    })
  )

  it.effect("limits of a layer count for the key", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: layers({ kind: "route", scope: Proxy.chat, policy: { rpm_limit: 2 } })
      })
      const key = yield* Proxy.issueKey({ rpm_limit: 50 })
      const ask = (target: string) =>
        Effect.map(gateway.ask({ target, headers: key.headers, body: { model: "large" } }), ({ status }) => status)
      assert.deepStrictEqual(
        [yield* ask(Proxy.chat), yield* ask(Proxy.chat), yield* ask(Proxy.chat), yield* ask("/v1/responses")],
        [200, 200, 429, 200]
      )
    })
  )

  it.effect("sizes: of a layer before the body is read, of a model's layer when the model is known", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: layers(
          { kind: "global", policy: { max_request_body_bytes: 300 } },
          { kind: "model", scope: "small", policy: { max_request_body_bytes: 100, max_response_body_bytes: 5 } }
        ),
        upstream: Upstream.json({ id: "answer" })
      })
      const key = yield* Proxy.issueKey()
      const ask = (model: string, input: string) =>
        gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model, input } })
      const statuses = [
        (yield* ask("large", "x".repeat(200))).status,
        (yield* ask("large", "x".repeat(300))).status,
        (yield* ask("small", "x".repeat(200))).status,
        (yield* ask("small", "x")).status
      ]
      assert.deepStrictEqual(statuses, [200, 413, 413, 413])
      assert.deepStrictEqual(
        (yield* gateway.records).map(({ denial, error_code }) => [error_code, denial]),
        [
          [null, null],
          ["request_body_too_large", { check: "request_bytes", layer: "global" }],
          ["request_body_too_large", { check: "request_bytes", layer: "model:small" }],
          ["response_body_too_large", { check: "response_bytes", layer: "model:small" }]
        ]
      )
      assert.lengthOf(gateway.sent, 2)
    })
  )

  it.effect.each([
    [{ max_output_tokens_per_request: 10 }, { max_tokens: 11 }, "output_tokens", "max_tokens"],
    [{ max_output_tokens_per_request: 10 }, { max_completion_tokens: 6, n: 2 }, "output_tokens", "max_tokens"],
    [{ max_tool_call_count: 1 }, { tools: [{}, {}] }, "tool_count", "tools"],
    [{ max_tool_schema_bytes: 20 }, { tools: [{ description: "a long one" }] }, "tool_schema", "tools"],
    [{ allowed_services: ["ocr"] }, { service: "summary" }, "service", null]
  ] as const)("a key with %j refuses %j before anything is sent", ([policy, body, check, param]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: layers() })
      const key = yield* Proxy.issueKey(policy)
      const refused = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "m", ...body } })
      const { error } = JSON.parse(refused.text)
      assert.deepStrictEqual([refused.status, error.code, error.param], [403, "policy_denied", param])
      assert.isEmpty(gateway.sent)
      const allowed = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "m" } })
      assert.strictEqual(allowed.status, 200)
      assert.deepStrictEqual((yield* gateway.records)[0]?.denial, { check, layer: "key" })
    })
  )

  it.effect.each(["/v1/messages/batches", "/v1/messages/batches/", "/v1/%6Dessages/batches"])(
    "a message batch for the compatible upstream is read as one: %s",
    (path) =>
      Effect.gen(function* () {
        const gateway = yield* Proxy.make({ configured: layers() })
        const key = yield* Proxy.issueKey({ allowed_models: ["cheap"], max_output_tokens_per_request: 10 })
        const ask = (params: object) =>
          Effect.map(
            gateway.ask({
              target: `/providers/compat${path}`,
              headers: key.headers,
              body: { requests: [{ custom_id: "c", params }] }
            }),
            ({ status }) => status
          )
        assert.deepStrictEqual(
          [
            yield* ask({ model: "cheap", max_tokens: 10 }),
            yield* ask({ model: "dear", max_tokens: 10 }),
            yield* ask({ model: "cheap", max_tokens: 11 })
          ],
          [200, 403, 403]
        )
        assert.lengthOf(gateway.sent, 1)
      })
  )

  it.effect("a fallback goes only where the layers of its own route let it", () =>
    Effect.gen(function* () {
      const target = "/providers/compat/v1/chat/completions"
      const broken: Upstream.Script = (sink, request) =>
        Upstream.json({ from: request.origin }, request.origin.includes("compat") ? 503 : 200)(sink, request)
      const closed = { kind: "route", scope: Proxy.chat, policy: { allow_tools: false } } as const
      const gateway = yield* Proxy.make({ configured: layers(closed), upstream: broken })
      const key = yield* Proxy.issueKey()
      const ask = (body: object) =>
        Effect.map(gateway.ask({ target, headers: key.headers, body }), ({ status }) => status)
      assert.deepStrictEqual([yield* ask({ model: "m" }), yield* ask({ model: "m", tools: [{}] })], [200, 503])
    })
  )
})

layer(Proxy.database)("ProxyApp, on streams under a policy", (it) => {
  it.effect("cuts a stream that lasts too long, and bills what passed", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: layers(),
        upstream: Upstream.hangs(Upstream.events("data: 1\n\n", "data: 2\n\n"))
      })
      const key = yield* Proxy.issueKey({ max_stream_duration_seconds: 30 })
      const asking = yield* Effect.forkChild(
        gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "m", stream: true } })
      )
      yield* Effect.repeat(Effect.yieldNow, { until: () => gateway.journal.includes("head 200") })
      yield* TestClock.adjust("29 seconds")
      assert.isUndefined(asking.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const wire = yield* Fiber.join(asking)
      assert.deepStrictEqual([wire.status, wire.ending], [200, "whole"])
      const [one, two, told = ""] = wire.text.split("\n\n")
      assert.deepStrictEqual([one, two], ["data: 1", "data: 2"])
      assert.deepInclude(JSON.parse(told.replace("data: ", "")).error, {
        code: "response_body_too_large",
        message:
          "The response streamed for longer than 30 seconds (max_stream_duration_seconds of this key's policy). Request less output, or ask an operator to raise the limit."
      })
      const [record] = yield* gateway.records
      assert.deepInclude(record, {
        status_code: 200,
        error_code: "response_body_too_large",
        usage_source: "estimated",
        denial: { check: "stream_duration", layer: "key" }
      })
    })
  )

  it.effect("leaves alone a stream that ends in time, and an answer that is none", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: layers(),
        upstream: (sink, request) =>
          (request.target === Proxy.messages
            ? Upstream.events("data: 1\n\n", "data: [DONE]\n\n")
            : Upstream.hangs(Upstream.json({})))(sink, request)
      })
      const key = yield* Proxy.issueKey({ max_stream_duration_seconds: 1, max_sse_event_bytes: 12 })
      const ask = (target: string) => gateway.ask({ target, headers: key.headers, body: { model: "m" } })
      assert.strictEqual((yield* ask(Proxy.messages)).ending, "whole")
      const waiting = yield* Effect.forkChild(ask(Proxy.chat))
      yield* Effect.repeat(Effect.yieldNow, {
        until: () => gateway.journal.filter((line) => line === "head 200").length > 1
      })
      yield* TestClock.adjust("5 seconds")
      assert.isUndefined(waiting.pollUnsafe())
      yield* Fiber.interrupt(waiting)
    })
  )

  it.effect("cuts a stream at an event that is too large", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: layers({ kind: "global", policy: { max_sse_event_bytes: 10 } }),
        upstream: Upstream.events("data: 1\n\n", "data: 23456789", "0\n\n")
      })
      const key = yield* Proxy.issueKey({ max_sse_event_bytes: 5000 })
      const wire = yield* gateway.ask({
        target: Proxy.messages,
        headers: key.headers,
        body: { model: "m", stream: true }
      })
      const [one, told = ""] = wire.text.split("\n\n")
      assert.deepStrictEqual([wire.ending, one], ["whole", "data: 1"])
      assert.match(told, /^event: error\ndata: {"type":"error","error":{"type":"request_too_large",/)
      const [record] = yield* gateway.records
      assert.deepInclude(record, {
        error_code: "response_body_too_large",
        denial: { check: "event_bytes", layer: "global" }
      })
    })
  )
})

layer(Proxy.database)("ProxyApp, for a key that nobody used", (it) => {
  const day = 86_400_000
  const usedAt = (id: string, created: number, used: number | null, enabled: number | null = null) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const date = (days: number | null) => (days === null ? null : new Date(Proxy.noon - days * day))
      yield* sql`UPDATE api_keys SET created_at = ${date(created)}, last_used_at = ${date(used)},
        enabled_at = ${date(enabled)} WHERE id = ${id}`
    })

  it.effect.each([
    ["never used", 8, null, null, 401],
    ["used long ago", 30, 7, null, 401],
    ["used in time", 30, 6, null, 200],
    ["created in time", 6, null, null, 200],
    ["enabled again since", 30, 8, 1, 200]
  ] as const)(
    "%s: answers accordingly, disables it, and writes that down as its own",
    ([, created, used, enabled, status]) =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const gateway = yield* Proxy.make({
          configured: layers({ kind: "global", policy: { unused_key_auto_disable_after_days: 7 } })
        })
        const key = yield* Proxy.issueKey()
        yield* usedAt(key.id, created, used, enabled)
        const ask = gateway.ask({
          target: Proxy.chat,
          headers: [...key.headers, "x-request-id", "late"],
          body: { model: "m" }
        })
        const [first, second] = yield* Effect.all([ask, ask], { concurrency: 2 })
        assert.deepStrictEqual([first.status, second.status], [status, status])
        if (status === 401) assert.strictEqual(codeOf(first), "disabled_virtual_key")
        const [row] = yield* sql`SELECT disabled FROM api_keys WHERE id = ${key.id}`
        assert.deepStrictEqual(row, { disabled: status === 401 })
        const events = yield* sql`SELECT action, actor_token_id, request_id, user_agent, after_json FROM audit_events
        WHERE target_id = ${key.id}`
        assert.deepStrictEqual(
          events,
          status === 200
            ? []
            : [
                {
                  action: "keys:disable",
                  actor_token_id: null,
                  request_id: "late",
                  user_agent: "gateway",
                  after_json: { disabled: true, unused_for_days: 7 }
                }
              ]
        )
        assert.isTrue((yield* AuditChain.use((chain) => chain.verify({}))).intact)
      }).pipe(Effect.provide(AuditChain.layer))
  )

  it.effect("a use that this process does not know of keeps it", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: layers() })
      const key = yield* Proxy.issueKey({ unused_key_auto_disable_after_days: 7 })
      const oneSecond = 1000 / day
      yield* usedAt(key.id, 7 - oneSecond, null)
      const ask = Effect.map(
        gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "m" } }),
        ({ status }) => status
      )
      assert.strictEqual(yield* ask, 200)
      // another gateway serves it, and the days since its creation come to an end
      yield* usedAt(key.id, 7 - oneSecond, 1)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* ask, 200)
      assert.strictEqual(yield* ask, 200)
    })
  )
})
