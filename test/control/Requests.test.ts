import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { HttpApi } from "effect/http-api"
import { ControlApi } from "../../src/control/api/ControlApi.ts"
import * as Fixtures from "./Fixtures.ts"
import { admin, at, call, ok, refusalOf, suite } from "./Listener.ts"

const projects = `${admin}/projects`

suite("Requests", (it) => {
  it.effect("the client's id is kept when it is 1 to 128 visible ASCII characters, and replaced when it is not", () =>
    Effect.gen(function* () {
      const given = (id: string) =>
        Effect.map(call("GET", projects, { headers: { "x-request-id": id } }), ({ headers }) => headers["x-request-id"])
      for (const id of ["r", "~!{}", "x".repeat(128)]) assert.strictEqual(yield* given(id), id)
      for (const id of ["x".repeat(129), "two words", "é"]) {
        assert.match(String(yield* given(id)), /^[0-9a-f]{8}-[0-9a-f-]{27}$/)
      }
      for (const path of ["/admin-ui/healthz", "/nowhere", "/admin-ui/%zz"]) {
        assert.match(String((yield* call("GET", path)).headers["x-request-id"]), /^[0-9a-f-]{36}$/, path)
      }
    })
  )

  it.effect("a path that there is not is 404 for operators, and under /admin-ui/admin 401 for everybody else", () =>
    Effect.gen(function* () {
      const missing = { status: 404, code: "not_found", param: null }
      for (const path of [
        "/nothing",
        "/healthz",
        "/v1/chat/completions",
        "/admin-ui/nothing",
        "/admin-ui/Healthz",
        "/admin-ui//healthz",
        "/admin-ui/healthz/",
        "/admin-ui/%zz"
      ]) {
        assert.deepStrictEqual(refusalOf(yield* call("GET", path, { authorization: null })), missing, path)
      }
      for (const path of [admin, `${admin}/nothing`, `${projects}/`, `${projects}/1/2/3`, `${admin}/Projects`]) {
        assert.deepStrictEqual(refusalOf(yield* call("GET", path)), missing, path)
        assert.strictEqual((yield* call("GET", path, { authorization: null })).status, 401, path)
      }
    })
  )

  it.effect("a method that a path does not have is 405 and names those that it has", () =>
    Effect.gen(function* () {
      const methodsOf = new Map<string, Array<string>>()
      HttpApi.reflect(ControlApi, {
        onGroup: () => {},
        onEndpoint: ({ endpoint: { method, path } }) => {
          methodsOf.set(path, [...(methodsOf.get(path) ?? []), method])
        }
      })
      for (const [pattern, methods] of methodsOf) {
        const path = pattern.replaceAll(/:\w+/g, "x")
        for (const method of (["GET", "POST", "PUT", "PATCH", "DELETE"] as const).filter((m) => !methods.includes(m))) {
          const answer = yield* call(method, path)
          assert.deepStrictEqual(
            refusalOf(answer),
            { status: 405, code: "method_not_allowed", param: null },
            `${method} ${path}`
          )
          assert.deepStrictEqual(answer.headers["allow"]?.split(", "), methods)
          if (path.startsWith(admin))
            assert.strictEqual((yield* call(method, path, { authorization: null })).status, 401)
        }
      }
    })
  )

  it.effect("an id that cannot exist names nothing", () =>
    Effect.gen(function* () {
      for (const [method, path] of [
        ["GET", `${projects}/1`],
        ["GET", `${admin}/keys/..%2F..`],
        ["PATCH", `${admin}/family-a-routes/models/config`],
        ["POST", `${admin}/family-b-routes/responses/enable`],
        ["DELETE", `${admin}/model-prices/a%00b`]
      ] as const) {
        const answer = yield* call(method, path, method === "PATCH" ? { body: {} } : {})
        assert.deepStrictEqual(refusalOf(answer), { status: 404, code: "not_found", param: null }, path)
      }
    })
  )

  it.effect("a body must be JSON, say so, and be whole", () =>
    Effect.gen(function* () {
      const sent = (text: string, type = "application/json") =>
        Effect.map(call("POST", projects, { text, headers: { "content-type": type } }), refusalOf)
      const name = JSON.stringify({ name: "typed" })
      for (const text of ["", "{", "nul", '{"name":"a"} {}', "{'name':'a'}"]) {
        assert.deepStrictEqual(yield* sent(text), { status: 400, code: "invalid_json", param: null }, text)
      }
      for (const [text, limit] of [
        ["[".repeat(1_000_000), /deeper than 256 levels/],
        [`[${"{},".repeat(300_000)}{}]`, /exceeds the limit of 1048576 values/]
      ] as const) {
        const refused = yield* call("POST", projects, { text, headers: { "content-type": "application/json" } })
        assert.deepStrictEqual(refusalOf(refused), { status: 400, code: "invalid_json", param: null })
        assert.match(refused.text, limit)
      }
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"]) {
        assert.deepStrictEqual(yield* sent(name, type), { status: 415, code: "unsupported_media_type", param: null })
      }
      assert.strictEqual((yield* call("POST", projects)).status, 415)
      assert.strictEqual((yield* sent(name, "Application/JSON; charset=utf-8")).status, 200)
      const filled = JSON.stringify({ name: "x".repeat(1_048_576 - JSON.stringify({ name: "" }).length) })
      assert.deepStrictEqual(yield* sent(filled), { status: 400, code: "invalid_project_payload", param: "name" })
      assert.deepStrictEqual(yield* sent(`${filled} `), { status: 413, code: "request_body_too_large", param: null })
    })
  )

  it.effect("what a field may not be is named by its path, and never repeated", () =>
    Effect.gen(function* () {
      const key = yield* Fixtures.key
      const refused = (method: "POST" | "PATCH" | "PUT" | "GET", path: string, body?: unknown) =>
        Effect.map(call(method, `${admin}${path}`, body === undefined ? {} : { body }), (answer) => {
          assert.deepStrictEqual(
            [answer.status, at(answer.json, "error", "code")],
            [422, "invalid_request"],
            answer.text
          )
          assert.notInclude(answer.text, "cAnArY")
          return at(answer.json, "error", "param")
        })
      const cases = [
        ["name", yield* refused("POST", "/projects", { name: 1 })],
        ["name", yield* refused("POST", "/projects", {})],
        ["extra", yield* refused("POST", "/projects", { name: "a", extra: "cAnArY" })],
        ["service_names.0", yield* refused("POST", "/keys", { owner_type: "individual", service_names: ["cAnArY"] })],
        ["preset", yield* refused("POST", "/keys", { owner_type: "individual", preset: "cAnArY" })],
        [
          "guardrail_policy.mandatory_guardrails",
          yield* refused("PATCH", `/keys/${key}`, { guardrail_policy: { mandatory_guardrails: "cAnArY" } })
        ],
        ["guardrail_policy.extra", yield* refused("PATCH", `/keys/${key}`, { guardrail_policy: { extra: [] } })],
        ["owner_type", yield* refused("POST", "/keys", { owner_type: "cAnArY" })],
        ["project_id", yield* refused("POST", "/keys", { project_id: "cAnArY" })],
        ["expires_at", yield* refused("PATCH", `/keys/${key}`, { expires_at: "cAnArY" })],
        ["expires_at", yield* refused("PATCH", `/keys/${key}`, { expires_at: "2026-02-30T00:00:00Z" })],
        ["expires_at", yield* refused("PATCH", `/keys/${key}`, { expires_at: "2026-02-03" })],
        ["disabled", yield* refused("PATCH", `/keys/${key}`, { disabled: null })],
        ["policy.rpm_limits", yield* refused("PATCH", `/keys/${key}`, { policy: { rpm_limits: 1 } })],
        ["policy.rpm_limit", yield* refused("PATCH", `/keys/${key}`, { policy: { rpm_limit: 1.5 } })],
        [
          "policy.allowed_routes.1",
          yield* refused("PATCH", `/keys/${key}`, { policy: { allowed_routes: ["/v1/models", "/cAnArY"] } })
        ],
        [
          "policy.allowed_providers.0",
          yield* refused("PATCH", `/keys/${key}`, { policy: { allowed_providers: ["x"] } })
        ],
        [
          "policy.allowed_hours_utc.0",
          yield* refused("PATCH", `/keys/${key}`, { policy: { allowed_hours_utc: [24] } })
        ],
        ["mode", yield* refused("PATCH", "/family-a-routes/responses/mode", { mode: "cAnArY" })],
        ["mode", yield* refused("PATCH", "/family-a-routes/responses/config", { mode: null })],
        ["timeout_ms", yield* refused("PATCH", "/family-a-routes/responses/config", { timeout_ms: 1.5 })],
        [
          "credential",
          yield* refused("POST", "/providers", {
            provider: "upstream",
            name: "n",
            base_url: "https://h",
            credential: { value: "cAnArY" }
          })
        ],
        ["provider", yield* refused("POST", "/providers", { provider: "cAnArY", name: "n", base_url: "https://h" })],
        ["scope", yield* refused("POST", "/providers/upstream-credentials", { scope: "team", target_id: key })],
        [
          "input_usd_per_million",
          yield* refused("PUT", "/model-prices/m", { input_usd_per_million: "1", output_usd_per_million: 1 })
        ],
        ["limit", yield* refused("GET", "/keys?limit=501")],
        ["limit", yield* refused("GET", "/usage/events?limit=0")],
        ["limit", yield* refused("GET", "/usage/events?limit=1&limit=2")],
        ["cursor", yield* refused("GET", "/keys?cursor=cAnArY")],
        ["key", yield* refused("GET", "/usage/events?key=cAnArY")],
        ["key_id", yield* refused("GET", "/usage/summary?key_id=cAnArY")],
        ["status", yield* refused("GET", "/usage/summary?status=cAnArY")],
        ["from", yield* refused("GET", "/usage/summary?from=tomorrow")]
      ] as const
      for (const [expected, param] of cases) assert.strictEqual(param, expected)
    })
  )

  it.effect("every mistake of a body is said at once", () =>
    Effect.gen(function* () {
      const { json } = yield* call("POST", `${admin}/keys`, {
        body: { owner: 1, policy: { rpm_limit: -1, deny: "no" } }
      })
      const message = String(at(json, "error", "message"))
      for (const field of ["owner: is not a known field", "policy.rpm_limit: ", "policy.deny: "]) {
        assert.include(message, field)
      }
    })
  )

  it.effect("a text that the database cannot hold is the caller's mistake, not ours", () =>
    Effect.gen(function* () {
      const policy = { allowed_models: ["a\u0000b"] }
      const made = yield* call("POST", `${admin}/keys`, { body: { owner_type: "individual", policy } })
      assert.deepStrictEqual(refusalOf(made), { status: 422, code: "invalid_request", param: null })
      const asked = yield* call("GET", `${admin}/usage/events?model=a%00b`)
      assert.deepStrictEqual(refusalOf(asked), { status: 422, code: "invalid_request", param: null })
    })
  )

  it.effect("bodies of actions are ignored", () =>
    Effect.gen(function* () {
      const key = yield* Fixtures.key
      yield* ok("POST", `${admin}/keys/${key}/disable`, { text: "{", headers: { "content-type": "text/plain" } })
    })
  )
})
