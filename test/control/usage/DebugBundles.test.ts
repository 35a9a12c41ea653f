import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"

const key = "00000000-0000-4000-8000-00000000000a"

/** A record as the gateway writes it. */
const record = (requestId: string, at: string, more: Readonly<Record<string, string | number | boolean | null>> = {}) =>
  Effect.flatMap(
    Database,
    ({ sql }) => sql`
      INSERT INTO usage_events ${sql.insert({
        id: crypto.randomUUID(),
        created_at: new Date(at),
        request_id: requestId,
        key_id: key,
        route: "/v1/chat/completions",
        model: "m",
        provider: "upstream",
        status: "success",
        status_code: 200,
        latency_ms: 12,
        usage_source: "reported",
        cost_source: "price_table",
        streamed: false,
        ...more
      })}`
  )

suite("Debug bundles", (it) => {
  it.effect("tell of one request what the gateway decided about it", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* record("denied-1", "2026-11-20T12:00:00Z", {
        status: "failure",
        status_code: 429,
        error_code: "rate_limited",
        policy_version: 3,
        tools: true,
        estimated_input_tokens: 7,
        denial: JSON.stringify({ check: "rpm_limit", layer: "project" }),
        trace_id: "t"
      })
      yield* sql`
        INSERT INTO guardrail_execution_events (id, created_at, request_id, key_id, route, provider, guardrail_name, mode,
          action, failure_policy, latency_ms, reason)
        VALUES (gen_random_uuid(), '2026-11-20T12:00:00Z', 'denied-1', ${key}, '/v1/chat/completions', 'upstream',
            'pii-redact', 'pre_call', 'modify', 'fail_closed', 1, NULL),
          (gen_random_uuid(), '2026-11-20T12:00:01Z', 'denied-1', ${key}, '/v1/chat/completions', 'upstream', 'own',
            'post_call', 'block', 'fail_open', 2, 'too long'),
          (gen_random_uuid(), '2026-11-20T12:00:01Z', 'another', ${key}, '/v1/chat/completions', 'upstream', 'own',
            'post_call', 'block', 'fail_open', 2, NULL)`
      assert.deepStrictEqual(yield* ok("GET", `${admin}/debug-bundles/denied-1`), {
        request_id: "denied-1",
        key_id: key,
        project_id: null,
        route: "/v1/chat/completions",
        model: "m",
        provider: "upstream",
        service_name: null,
        trace_id: "t",
        status_code: 429,
        error_code: "rate_limited",
        latency_ms: 12,
        policy_trace: [
          "policy_version=3",
          "streamed=false",
          "tools=true",
          "estimated_input_tokens=7",
          "denied_by=rpm_limit",
          "denied_in_layer=project"
        ],
        guardrail_trace: ["pre_call:pii-redact:modify", "post_call:own:block:too long"],
        guardrails: [
          { mode: "pre_call", name: "pii-redact", action: "modify", reason: null, latency_ms: 1 },
          { mode: "post_call", name: "own", action: "block", reason: "too long", latency_ms: 2 }
        ],
        selection_trace: ["provider=upstream", "usage_source=reported", "cost_source=price_table"],
        fallback_history: [],
        upstream_latency_ms: null,
        request_hash: null,
        response_hash: null,
        redaction_version: 1,
        created_at: "2026-11-20T12:00:00.000Z"
      })
    })
  )

  it.effect("are of the latest request, where clients used an id twice", () =>
    Effect.gen(function* () {
      yield* record("twice", "2026-11-20T12:00:00Z", { provider: "upstream" })
      yield* record("twice", "2026-11-20T12:00:01Z", {
        route: "/providers/compat/*",
        provider: "upstream",
        fallback_count: 1,
        fallback_reason: "http_503",
        upstream_ms: 7
      })
      const bundle = yield* ok("GET", `${admin}/debug-bundles/twice`)
      assert.strictEqual(at(bundle, "created_at"), "2026-11-20T12:00:01.000Z")
      assert.deepStrictEqual(at(bundle, "policy_trace"), ["policy_not_loaded", "streamed=false"])
      assert.deepInclude(at(bundle, "fallback_history", 0), {
        from_provider: "compat",
        to_provider: "upstream",
        reason: "http_503",
        status_code: 503
      })
      assert.strictEqual(at(bundle, "upstream_latency_ms"), 7)
    })
  )

  it.effect("are not there for a request that is not recorded", () =>
    Effect.gen(function* () {
      const missing = { status: 404, code: "debug_bundle_not_found", param: null }
      assert.deepStrictEqual(refusalOf(yield* call("GET", `${admin}/debug-bundles/nothing`)), missing)
      const impossible = yield* call("GET", `${admin}/debug-bundles/${"x".repeat(129)}`)
      assert.deepStrictEqual(refusalOf(impossible), { ...missing, code: "not_found" })
    })
  )

  it.effect("say what cut an answer whose head had gone out", () =>
    Effect.gen(function* () {
      yield* record("cut-1", "2026-11-20T13:00:00Z", {
        status: "failure",
        error_code: "upstream_timeout",
        streamed: true
      })
      const bundle = yield* ok("GET", `${admin}/debug-bundles/cut-1`)
      assert.deepInclude(bundle, { status_code: 200, error_code: "upstream_timeout" })
      assert.include(JSON.stringify(at(bundle, "selection_trace")), "terminal_error=upstream_timeout")
      yield* record("refused-1", "2026-11-20T13:00:00Z", {
        status: "failure",
        status_code: 504,
        error_code: "upstream_timeout"
      })
      const refused = yield* ok("GET", `${admin}/debug-bundles/refused-1`)
      assert.notInclude(JSON.stringify(at(refused, "selection_trace")), "terminal_error")
    })
  )
})
