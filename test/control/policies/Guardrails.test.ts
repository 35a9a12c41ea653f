import { randomUUID } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { Database } from "../../../src/services/Database.ts"
import * as Fixtures from "../Fixtures.ts"
import { entriesOf, guardrails, type Json, keyWith, listAt } from "../GuardedKeys.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"

suite("Guardrails", (it) => {
  it.effect("the catalogue begins with pii-redact, and shows a new entry with its defaults", () =>
    Effect.gen(function* () {
      const [seeded] = entriesOf(yield* ok("GET", guardrails)).map(withoutTime)
      assert.deepStrictEqual(seeded, {
        name: "pii-redact",
        description: "Replaces e-mail addresses, phone numbers and social security numbers by placeholders",
        provider_kind: "built_in",
        modes: ["pre_call", "post_call", "during_call"],
        default_on: false,
        failure_policy: "fail_closed",
        config_schema: { restore_output: "boolean" },
        runtime_config: { restore_output: true },
        enabled: true,
        endpoint_configured: false,
        endpoint_url: null,
        timeout_ms: null,
        stream_mode: null,
        window_chars: null,
        token_configured: false
      })
      const body = { name: "new.one", endpoint_url: "https://guard.example/check?x=1", failure_policy: "fail_open" }
      assert.deepStrictEqual(withoutTime(yield* ok("POST", guardrails, { body })), {
        ...body,
        description: "",
        provider_kind: "http",
        modes: ["pre_call", "post_call"],
        default_on: false,
        config_schema: {},
        runtime_config: {},
        enabled: true,
        endpoint_configured: true,
        timeout_ms: 1500,
        stream_mode: "buffer",
        window_chars: 512,
        token_configured: false
      })
      assert.deepStrictEqual(
        entriesOf(yield* ok("GET", guardrails)).map((entry) => at(entry, "name")),
        ["new.one", "pii-redact"]
      )
      yield* ok("DELETE", `${guardrails}/new.one`)
    })
  )

  it.effect(
    "what is named like a secret is refused wherever it would be shown, and what only resembles one is not",
    () =>
      Effect.gen(function* () {
        const name = yield* Fixtures.guardrail
        const refused = Effect.fnUntraced(function* (method: "PATCH" | "POST", path: string, body: Schema.Json) {
          const answer = yield* call(method, `${admin}/${path}`, { body })
          assert.deepInclude(refusalOf(answer), { status: 400, code: "invalid_guardrail_request" })
          assert.include(answer.text, "bearer_token")
          assert.notInclude(answer.text, "canary")
        })
        for (const member of [
          "token",
          "client_secret",
          "Password",
          "api_key",
          "x-api-key",
          "Authorization",
          "accessToken"
        ]) {
          yield* refused("PATCH", `guardrails/${name}`, { runtime_config: { [member]: "canary" } })
        }
        const guardrail_policy = { guardrail_config_overrides: { [name]: { headers: { authorization: "canary" } } } }
        yield* refused("POST", "keys", { owner_type: "individual", guardrail_policy })
        yield* refused("POST", "policy-layers", { kind: "team", scope_id: "secretive", guardrail_policy })
        const document = yield* ok("GET", `${admin}/configuration`)
        assert(typeof document === "object" && document !== null && !Array.isArray(document))
        const entries = entriesOf(document).map((entry) =>
          at(entry, "name") === name && typeof entry === "object" && entry !== null
            ? { ...entry, runtime_config: { secret: "canary" } }
            : entry
        )
        const changed = { ...document, guardrails: entries }
        const plan = yield* call("POST", `${admin}/configuration/plan`, { body: changed })
        const base_hash = plan.status === 200 ? at(plan.json, "base_hash") : "none"
        const apply = yield* call("POST", `${admin}/configuration/apply`, { body: { base_hash, document: changed } })
        assert.strictEqual(apply.status, 400, apply.text)
        const harmless = { max_tokens: 5, detect_secret: true, token: "", tokens: "word", keyword: "password" }
        const kept = yield* ok("PATCH", `${admin}/guardrails/${name}`, { body: { runtime_config: harmless } })
        assert.deepStrictEqual(at(kept, "runtime_config"), harmless)
      })
  )

  it.effect("a deleted one is in no policy any more: neither a layer's nor a key's", () =>
    Effect.gen(function* () {
      const name = yield* Fixtures.guardrail
      const guardrail_policy = {
        mandatory_guardrails: [name],
        optional_guardrails: ["pii-redact"],
        guardrail_config_overrides: { [name]: { strict: true } }
      }
      const layer = yield* ok("POST", `${admin}/policy-layers`, {
        body: { kind: "team", scope_id: "forgetful", guardrail_policy }
      })
      const key = at(
        yield* ok("POST", `${admin}/keys`, { body: { owner_type: "individual", guardrail_policy } }),
        "key",
        "id"
      )
      yield* ok("DELETE", `${guardrails}/${name}`)
      const layers = yield* ok("GET", `${admin}/policy-layers`)
      const left = Array.isArray(layers) ? layers.find((one) => at(one, "id") === at(layer, "id")) : undefined
      for (const holder of [left ?? null, yield* ok("GET", `${admin}/keys/${key}`)]) {
        assert.notInclude(JSON.stringify(at(holder, "guardrail_policy")), name)
        assert.include(JSON.stringify(at(holder, "guardrail_policy")), "pii-redact")
      }
    })
  )

  it.effect("what is wrong is named, and nothing of it is kept", () =>
    Effect.gen(function* () {
      const name = yield* Fixtures.guardrail
      const good = { name: "wrong", endpoint_url: "https://guard.example", failure_policy: "fail_open" }
      const cases: ReadonlyArray<readonly [string, string, object, number, string, string]> = [
        ["POST", "", { ...good, name }, 400, "invalid_guardrail_request", "name"],
        ["POST", "", { ...good, endpoint_url: "ftp://x" }, 400, "invalid_guardrail_request", "endpoint_url"],
        ["POST", "", { ...good, endpoint_url: "http://u:p@x" }, 400, "invalid_guardrail_request", "endpoint_url"],
        ["POST", "", { ...good, bearer_token: "a b" }, 400, "invalid_guardrail_request", "bearer_token"],
        [
          "POST",
          "",
          { ...good, runtime_config: { a: "x".repeat(20_000) } },
          400,
          "invalid_guardrail_request",
          "runtime_config"
        ],
        ["POST", "", { ...good, name: "not a name" }, 422, "invalid_request", "name"],
        ["POST", "", { ...good, failure_policy: "fail" }, 422, "invalid_request", "failure_policy"],
        [
          "POST",
          "",
          { ...good, runtime_config: { a: [{ apiKey: "k" }] } },
          400,
          "invalid_guardrail_request",
          "runtime_config.a.apiKey"
        ],
        [
          "POST",
          "",
          { ...good, endpoint_url: "https://guard.example/?a=1&access_token=k" },
          400,
          "invalid_guardrail_request",
          "endpoint_url"
        ],
        ["POST", "", { ...good, runtime_config: [] }, 422, "invalid_request", "runtime_config"],
        ["POST", "", { ...good, modes: ["sometimes"] }, 422, "invalid_request", "modes.0"],
        ["POST", "", { ...good, token: "x" }, 422, "invalid_request", "token"],
        ["POST", "", { ...good, stream_mode: "sometimes" }, 422, "invalid_request", "stream_mode"],
        ["POST", "", { ...good, window_chars: 63 }, 422, "invalid_request", "window_chars"],
        ["POST", "", { ...good, window_chars: 16_385 }, 422, "invalid_request", "window_chars"],
        ["PATCH", `/${name}`, { modes: [] }, 400, "invalid_guardrail_request", "modes"],
        ["PATCH", "/unknown", { enabled: false }, 400, "invalid_guardrail_request", "name"],
        ["PATCH", "/pii-redact", { endpoint_url: "https://x" }, 400, "invalid_guardrail_request", "endpoint_url"],
        ["PATCH", "/pii-redact", { description: "mine" }, 400, "invalid_guardrail_request", "description"],
        ["PATCH", "/pii-redact", { bearer_token: null }, 400, "invalid_guardrail_request", "bearer_token"],
        ["PATCH", "/pii-redact", { stream_mode: "window" }, 400, "invalid_guardrail_request", "stream_mode"],
        ["PATCH", "/pii-redact", { window_chars: 64 }, 400, "invalid_guardrail_request", "window_chars"],
        [
          "PATCH",
          "/pii-redact",
          { runtime_config: { restore_output: 1 } },
          400,
          "invalid_guardrail_request",
          "runtime_config.restore_output"
        ],
        ["DELETE", "/pii-redact", {}, 400, "invalid_guardrail_request", "name"],
        ["DELETE", "/unknown", {}, 400, "invalid_guardrail_request", "name"]
      ]
      const before = yield* ok("GET", guardrails)
      for (const [method, path, body, status, code, param] of cases) {
        const answer = yield* call(
          method === "POST" ? "POST" : method === "PATCH" ? "PATCH" : "DELETE",
          guardrails + path,
          {
            ...(method !== "DELETE" && { body })
          }
        )
        assert.deepStrictEqual(refusalOf(answer), { status, code, param }, `${method} ${path} ${param}`)
      }
      assert.deepStrictEqual(yield* ok("GET", guardrails), before)
    })
  )

  it.effect(
    "a patch changes what it names; a token goes in and is never shown; timeouts are moved into their bounds",
    () =>
      Effect.gen(function* () {
        const name = yield* Fixtures.guardrail
        const path = `${guardrails}/${name}`
        const patched = yield* ok("PATCH", path, {
          body: {
            bearer_token: "sk-cAnArY",
            timeout_ms: 1,
            stream_mode: "window",
            window_chars: 1024,
            modes: ["post_call", "post_call"],
            runtime_config: { a: 1 }
          }
        })
        assert.deepInclude(patched, {
          token_configured: true,
          timeout_ms: 100,
          stream_mode: "window",
          window_chars: 1024,
          modes: ["post_call"],
          runtime_config: { a: 1 },
          failure_policy: "fail_closed"
        })
        assert.strictEqual(at(yield* ok("PATCH", path, { body: { timeout_ms: 60_000 } }), "timeout_ms"), 10_000)
        const { sql } = yield* Database
        const everywhere = JSON.stringify([
          patched,
          yield* ok("GET", `${admin}/audit-events?target_id=${name}`),
          yield* sql`SELECT sealed_token FROM guardrail_definitions WHERE name = ${name}`
        ])
        assert.notInclude(everywhere, "cAnArY")
        assert.strictEqual(at(yield* ok("PATCH", path, { body: { bearer_token: null } }), "token_configured"), false)
        yield* ok("PATCH", `${guardrails}/pii-redact`, { body: { default_on: true, enabled: false } })
        const restored = yield* ok("PATCH", `${guardrails}/pii-redact`, { body: { default_on: false, enabled: true } })
        assert.deepInclude(restored, { default_on: false, enabled: true, runtime_config: { restore_output: true } })
      })
  )

  it.effect("deleting a guardrail takes it out of every key's policy, and leaves the rest of it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const name = yield* Fixtures.guardrail
      const holder = yield* keyWith({
        mandatory_guardrails: [name, "pii-redact"],
        forbidden_guardrails: [name],
        guardrail_config_overrides: { [name]: { a: 1 }, "pii-redact": { restore_output: false } }
      })
      const other = yield* keyWith({ optional_guardrails: ["pii-redact"] })
      assert.strictEqual((yield* call("DELETE", `${guardrails}/${name}`)).status, 204)
      const held = yield* sql`
        SELECT guardrail_policy, policy_version FROM api_keys WHERE id IN ${sql.in([holder.id, other.id])} ORDER BY policy_version`
      assert.deepStrictEqual(held, [
        { guardrail_policy: { optional_guardrails: ["pii-redact"] }, policy_version: 1n },
        {
          guardrail_policy: {
            mandatory_guardrails: ["pii-redact"],
            forbidden_guardrails: [],
            guardrail_config_overrides: { "pii-redact": { restore_output: false } }
          },
          policy_version: 2n
        }
      ])
    })
  )

  it.effect("executions can be filtered, paged and summed", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const key_id = randomUUID()
      for (let second = 0; second < 5; second++) {
        const mode = second % 2 === 0 ? "pre_call" : "post_call"
        yield* sql`INSERT INTO guardrail_execution_events (id, created_at, request_id, key_id, route, model, provider,
          guardrail_name, mode, action, failure_policy, latency_ms, reason, metadata)
          VALUES (${randomUUID()}, ${new Date(Date.UTC(2026, 4, 5, 12, 0, second))}, ${`r-${second}`}, ${key_id},
          '/v1/responses', 'm', 'upstream', 'pii-redact', ${mode}, ${second === 4 ? "block" : "modify"}, 'fail_closed', ${second},
          ${["why", "guardrail_unavailable"][4 - second] ?? null}, '{"email_count":1}')`
      }
      const about = `${guardrails}/executions?key_id=${key_id}`
      const first = yield* ok("GET", `${about}&limit=2`)
      assert.deepStrictEqual<unknown>(at(first, "executions", 0), {
        id: at(first, "executions", 0, "id"),
        request_id: "r-4",
        key_id,
        project_id: null,
        route: "/v1/responses",
        model: "m",
        provider: "upstream",
        guardrail_name: "pii-redact",
        mode: "pre_call",
        action: "block",
        failure_policy: "fail_closed",
        latency_ms: 4,
        reason: "why",
        metadata: { email_count: 1 },
        created_at: "2026-05-05T12:00:04.000Z"
      })
      const second = yield* ok("GET", `${about}&limit=2&cursor=${at(first, "next_cursor")}`)
      const third = yield* ok("GET", `${about}&limit=2&cursor=${at(second, "next_cursor")}`)
      assert.deepStrictEqual([first, second, third].flatMap(requestsOf), ["r-4", "r-3", "r-2", "r-1", "r-0"])
      assert.isNull(at(third, "next_cursor"))
      assert.deepStrictEqual(requestsOf(yield* ok("GET", `${about}&limit=2&offset=1`)), ["r-3", "r-2"])
      for (const [filter, expected] of [
        ["mode=post_call", ["r-3", "r-1"]],
        ["action=block", ["r-4"]],
        ["guardrail=other", []],
        [
          "route=/v1/responses&model=m&provider=upstream&from=2026-05-05T12:00:01Z&to=2026-05-05T12:00:03Z",
          ["r-2", "r-1"]
        ]
      ] as const) {
        assert.deepStrictEqual<unknown>(requestsOf(yield* ok("GET", `${about}&${filter}`)), expected, filter)
      }
      const sum = { guardrail_name: "pii-redact", failure_policy: "fail_closed" }
      assert.deepStrictEqual(yield* ok("GET", `${guardrails}/summary?key_id=${key_id}`), {
        summary: [
          { ...sum, mode: "post_call", action: "modify", count: 2, failed_count: 1, total_latency_ms: 4 },
          { ...sum, mode: "pre_call", action: "block", count: 1, failed_count: 0, total_latency_ms: 4 },
          { ...sum, mode: "pre_call", action: "modify", count: 2, failed_count: 0, total_latency_ms: 2 }
        ]
      })
      const backwards = yield* call("GET", `${about}&from=2026-05-05T12:00:03Z&to=2026-05-05T12:00:01Z`)
      assert.deepStrictEqual(refusalOf(backwards), { status: 400, code: "invalid_usage_query", param: "from" })
    })
  )
})

const requestsOf = (json: Json) => listAt(json, "executions").map((execution) => at(execution, "request_id"))

/** The guardrail apart from when it was changed, which no test can foresee. */
const withoutTime = (guardrail: Json) => {
  assert.match(String(at(guardrail, "updated_at")), /^\d{4}-\d\d-\d\dT.*Z$/)
  return Object.fromEntries(Object.entries(guardrail ?? {}).filter(([name]) => name !== "updated_at"))
}
