import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../../src/services/Database.ts"
import * as ScriptedServer from "../../upstream/ScriptedServer.ts"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"

const health = `${admin}/provider-health`

/** Nothing is asked but what a test itself registers. */
const alone = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`DELETE FROM provider_configs`
  yield* sql`DELETE FROM service_registrations`
  yield* sql`DELETE FROM provider_health_states`
})

const statusOf = (request: string): number =>
  request.includes("/broken") ? 503 : request.startsWith("HEAD") ? 204 : request.includes("x-api-key") ? 401 : 404

const register = (name: string, body: object) => ok("POST", `${admin}/services`, { body: { name, ...body } })

const checked = Effect.map(ok("POST", `${health}/check`), (json) => {
  const results = at(json, "results")
  assert(Array.isArray(results))
  return results
})

suite("Provider health", (it) => {
  it.effect("monitors see the state that each circuit was recorded in, and how often states changed", () =>
    Effect.gen(function* () {
      yield* alone
      const changes = Effect.map(call("GET", "/admin-ui/metrics"), ({ text }) =>
        Number(/^gateway_circuit_transitions_total (\d+)$/m.exec(text)?.[1] ?? 0)
      )
      const before = yield* changes
      const put = (circuit_state: string) =>
        ok("POST", `${health}/state`, {
          body: { provider: "internal-service", name: "o c/r", status: "unhealthy", circuit_state }
        })
      yield* put("closed")
      yield* put("open")
      yield* put("open")
      yield* put("half_open")
      assert.strictEqual((yield* changes) - before, 2)
      const { text } = yield* call("GET", "/admin-ui/metrics")
      const lines = text.split("\n").filter((line) => line.startsWith("gateway_circuit_breaker_state{"))
      const told = lines
        .filter((line) => line.includes('name="ocr"') && line.includes('provider="internal-service"'))
        .map((line) => /state="(\w+)".*(\d)$/.exec(line)?.slice(1))
      assert.sameDeepMembers(told, [
        ["closed", "0"],
        ["open", "0"],
        ["half_open", "1"]
      ])
    })
  )

  it.effect("a check asks every enabled row once, with its credential, and looks at the status alone", () =>
    Effect.gen(function* () {
      yield* alone
      const heard: Array<string> = []
      const server = yield* ScriptedServer.serve(async (peer) => {
        const request = await peer.request()
        heard.push(request)
        await peer.write(ScriptedServer.answer("x", statusOf(request)))
      })
      yield* register("well", {
        upstream_base_url: server.origin,
        credential: "svc-well",
        health_check_path: "/healthz",
        health_check_method: "HEAD"
      })
      yield* register("broken", { upstream_base_url: server.origin, health_check_path: "/broken" })
      yield* register("homeless", {})
      yield* register("rootless", { upstream_base_url: server.origin })
      yield* register("off", { upstream_base_url: server.origin, enabled: false })
      yield* register("gone", { upstream_base_url: yield* ScriptedServer.refusing })
      yield* ok("POST", `${admin}/providers`, {
        body: {
          provider: "upstream",
          name: "proxy",
          base_url: `${server.origin}/api/v1`,
          credential: "sk-proxy",
          credential_header_mode: "custom_header",
          credential_header_name: "X-Upstream-Key",
          credential_header_value_format: "bearer"
        }
      })
      yield* ok("POST", `${admin}/providers`, {
        body: { provider: "upstream", name: "vendor", base_url: server.origin, credential: "sk-1", family: "anthropic" }
      })
      const results = yield* checked
      const told = results.map((row) => [
        at(row, "provider"),
        at(row, "name"),
        at(row, "status"),
        at(row, "circuit_state"),
        at(row, "active_check_ok"),
        at(row, "last_error_code"),
        at(row, "consecutive_failures")
      ])
      assert.sameDeepMembers(told, [
        ["upstream", "proxy", "healthy", "closed", true, null, 0],
        ["upstream", "vendor", "degraded", "closed", true, "credential_refused", 0],
        ["internal-service", "rootless", "healthy", "closed", true, null, 0],
        ["internal-service", "well", "healthy", "closed", true, null, 0],
        ["internal-service", "broken", "unhealthy", "closed", false, "http_503", 1],
        ["internal-service", "homeless", "unhealthy", "closed", false, "missing_upstream_url", 1],
        ["internal-service", "gone", "unhealthy", "closed", false, "unreachable", 1]
      ])
      for (const row of results) {
        assert.strictEqual(at(row, "average_latency_ms") === null, at(row, "name") === "homeless")
        assert.isString(at(row, "checked_at"))
      }
      assert.deepStrictEqual(heard.map((request) => request.split(" HTTP/")[0]).sort(), [
        "GET /",
        "GET /api/v1/models",
        "GET /broken",
        "GET /v1/models",
        "HEAD /healthz"
      ])
      assert.match(heard.find((request) => request.startsWith("HEAD")) ?? "", /^authorization: Bearer svc-well\r$/m)
      const asked = (path: string) => heard.find((request) => request.startsWith(`GET ${path} `)) ?? ""
      assert.match(asked("/api/v1/models"), /^X-Upstream-Key: Bearer sk-proxy\r$/m)
      assert.match(asked("/v1/models"), /^x-api-key: sk-1\r\nanthropic-version: 2023-06-01\r$/m)
      assert.sameDeepMembers(Object(yield* ok("GET", `${health}/state`)), results)

      const again = yield* checked
      const broken = again.find((row) => at(row, "name") === "broken")
      assert.strictEqual(at(broken, "consecutive_failures"), 2)
      const events = yield* call("GET", `${admin}/audit-events?target_type=provider_health`)
      assert.notInclude(events.text, "svc-well")
    }).pipe(Effect.scoped)
  )

  it.effect("a check closes the circuit of a service that it finds well, and changes none that it does not", () =>
    Effect.gen(function* () {
      yield* alone
      const server = yield* ScriptedServer.serve((peer) => peer.write(ScriptedServer.answer("x")))
      const refusing = yield* ScriptedServer.refusing
      const addresses = { mended: server.origin, held: refusing, gone: refusing }
      for (const [name, upstream_base_url] of Object.entries(addresses)) yield* register(name, { upstream_base_url })
      for (const [name, circuit_state] of [
        ["mended", "open"],
        ["held", "half_open"]
      ]) {
        const body = { provider: "internal-service", name, status: "unhealthy", circuit_state }
        yield* ok("POST", `${health}/state`, { body })
      }
      const states = new Map((yield* checked).map((row) => [at(row, "name"), at(row, "circuit_state")]))
      assert.deepStrictEqual(
        ["mended", "held", "gone"].map((name) => states.get(name)),
        ["closed", "half_open", "closed"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("who does not answer in three seconds is told to be late", () =>
    Effect.gen(function* () {
      yield* alone
      const server = yield* ScriptedServer.serve(() => {})
      yield* register("silent", { upstream_base_url: server.origin })
      const state = (yield* checked).find((row) => at(row, "name") === "silent")
      assert.deepInclude(state, { status: "unhealthy", last_error_code: "timeout" })
    }).pipe(Effect.scoped)
  )

  it.effect("a state can be written whole, and sent back as it was read", () =>
    Effect.gen(function* () {
      yield* alone
      const state = {
        name: "by hand",
        provider: "compat",
        status: "degraded",
        circuit_state: "half_open",
        active_check_ok: false,
        passive_success_count: 5,
        passive_failure_count: 2,
        consecutive_failures: 1,
        average_latency_ms: 12.5,
        last_error_code: "http_500",
        cooldown_until: "2026-11-21T12:00:00.000Z",
        checked_at: "2026-11-21T11:00:00.000Z"
      }
      const first = yield* ok("POST", `${health}/state`, { body: state })
      assert.deepInclude(first, state)
      const { status_since, updated_at: _, ...second } = Object(yield* ok("POST", `${health}/state`, { body: first }))
      assert.deepStrictEqual(second, state)
      // the state was written again, and is what it was
      assert.strictEqual(status_since, at(first, "status_since"))
      assert.isString(status_since)
      const { name, provider } = state
      const bare = { name, provider, status: "unknown", circuit_state: "closed" }
      const changed = yield* ok("POST", `${health}/state`, { body: bare })
      assert.strictEqual(at(changed, "status_since"), at(changed, "updated_at"))
      assert.notStrictEqual(at(changed, "status_since"), status_since)
      assert.deepInclude(changed, {
        ...bare,
        active_check_ok: null,
        passive_success_count: 0,
        last_error_code: null,
        checked_at: null
      })
      // a process of an older version does not know the column
      const { sql } = yield* Database
      yield* sql`UPDATE provider_health_states SET status = 'healthy', updated_at = now() WHERE name = ${name}`
      const [older] = Object(yield* ok("GET", `${health}/state`))
      assert.strictEqual(at(older, "status_since"), at(older, "updated_at"))
      assert.notStrictEqual(at(older, "status_since"), at(changed, "status_since"))
      assert.lengthOf(Object(yield* ok("GET", `${health}/state`)), 1)
      for (const wrong of [{ status: "fine" }, { provider: "nobody" }, { passive_success_count: -1 }, { name: "" }]) {
        const answer = yield* call("POST", `${health}/state`, { body: { ...state, ...wrong } })
        assert.deepStrictEqual([answer.status, refusalOf(answer).code], [422, "invalid_request"])
      }
    })
  )

  it.effect(
    "what requests saw is summed by service, or else by provider, over the last day or the time asked for",
    () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const key = yield* Fixtures.key
        const used = (
          at: string,
          service: string | null,
          status: number,
          end: { readonly code?: string; readonly isSent?: boolean } = {}
        ) => sql`
        INSERT INTO usage_events (id, created_at, request_id, key_id, route, provider, status, status_code, error_code, latency_ms,
          upstream_ms, usage_source, cost_source, streamed, fallback_count, service_name)
        VALUES (gen_random_uuid(), now() + ${at}::interval, 'r', ${key}, '/services/*', 'internal-service',
          ${status < 400 ? "success" : "failure"}, ${status}, ${end.code ?? null}, 10, ${end.isSent === false ? null : 9},
          'status_only', 'none', false, 1, ${service})`
        yield* used("0", "ocr", 200)
        yield* used("-1 hour", "ocr", 504, { code: "upstream_timeout", isSent: false })
        // what the gateway refused never came there, and what a guardrail withheld was answered
        yield* used("-1 hour", "ocr", 402, { code: "budget_exceeded", isSent: false })
        yield* used("-1 hour", "ocr", 403, { code: "policy_denied", isSent: false })
        yield* used("-1 hour", "ocr", 400, { code: "guardrail_blocked" })
        yield* used("-2 hours", "ocr", 400)
        yield* used("-1 hour", null, 200)
        yield* used("-2 days", "old", 200)
        const sums = (json: Parameters<typeof at>[0]) => (Array.isArray(json) ? json : [])
        assert.deepStrictEqual(sums(yield* ok("GET", health)), [
          {
            name: "internal-service",
            request_count: 1,
            error_count: 0,
            timeout_count: 0,
            fallback_count: 1,
            total_latency_ms: 10
          },
          { name: "ocr", request_count: 4, error_count: 2, timeout_count: 1, fallback_count: 4, total_latency_ms: 40 }
        ])
        const all = sums(yield* ok("GET", `${health}?from=2020-01-01T00:00:00Z`))
        assert.deepStrictEqual(
          all.map((row) => at(row, "name")),
          ["internal-service", "ocr", "old"]
        )
        const none = yield* ok("GET", `${health}?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z`)
        assert.deepStrictEqual(none, [])
        const backwards = yield* call("GET", `${health}?from=2020-01-02T00:00:00Z&to=2020-01-01T00:00:00Z`)
        assert.deepStrictEqual(refusalOf(backwards), { status: 400, code: "invalid_usage_query", param: "from" })
      })
  )
})
