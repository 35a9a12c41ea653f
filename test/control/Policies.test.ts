import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Database } from "../../src/services/Database.ts"
import * as Fixtures from "./Fixtures.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "./Listener.ts"

const layers = `${admin}/policy-layers`
const keys = `${admin}/keys`
const simulate = (body: object) => ok("POST", `${admin}/policy/simulate`, { body })
const decisionOf = (json: Schema.Json) => [
  at(json, "final_decision", "allowed"),
  at(json, "final_decision", "error_code")
]
const nobody = "00000000-0000-4000-8000-000000000000"

const fresh = Effect.flatMap(Database, ({ sql }) => sql`DELETE FROM policy_layers`)

suite("Policy layers", (it) => {
  it.effect("that are only to be made replace none, also if several people make one at once", () =>
    Effect.gen(function* () {
      yield* fresh
      const make = (rpm_limit: number) =>
        call("POST", layers, {
          body: { kind: "team", scope_id: "blue", policy: { rpm_limit }, expected_updated_at: null }
        })
      const answers = yield* Effect.all([make(1), make(2), make(3)], { concurrency: "unbounded" })
      assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [200, 409, 409])
      const list = yield* ok("GET", layers)
      assert(Array.isArray(list))
      const stored: Schema.Json = list[0]
      assert.deepInclude(Object(at(stored, "policy")), { policy_version: 1 })
      const late = yield* make(4)
      assert.deepInclude(refusalOf(late), { status: 409, code: "changed_since_read", param: "expected_updated_at" })
      assert.deepStrictEqual(yield* ok("GET", `${layers}/${idOf(stored)}`), stored)
      const body = { kind: "team", scope_id: "blue", expected_updated_at: at(stored, "updated_at") }
      yield* ok("POST", layers, { body })
    })
  )

  it.effect("one for each kind and scope: a second one takes the place of the first, with a higher version", () =>
    Effect.gen(function* () {
      yield* fresh
      const put = (body: object) => ok("POST", layers, { body })
      const first = yield* put({ kind: "global", policy: { rpm_limit: 5, allowed_models: ["m"] } })
      assert.deepInclude(Object(first), { kind: "global", scope_id: null })
      assert.deepInclude(Object(at(first, "policy")), { rpm_limit: 5, allow_tools: true, policy_version: 1 })
      const second = yield* put({ kind: "global", policy: { tpm_limit: 7 } })
      assert.strictEqual(idOf(second), idOf(first))
      assert.deepInclude(Object(at(second, "policy")), {
        rpm_limit: null,
        allowed_models: null,
        tpm_limit: 7,
        policy_version: 2
      })
      const guarded = yield* put({ kind: "global", guardrail_policy: { mandatory_guardrails: ["pii-redact"] } })
      assert.deepInclude(Object(at(guarded, "policy")), { tpm_limit: 7, policy_version: 3 })
      assert.deepStrictEqual(at(guarded, "guardrail_policy", "mandatory_guardrails"), ["pii-redact"])
      const neutral = yield* put({ kind: "global", policy: null, guardrail_policy: null })
      assert.deepInclude(Object(at(neutral, "policy")), { tpm_limit: null, policy_version: 4 })
      assert.deepStrictEqual(at(neutral, "guardrail_policy", "mandatory_guardrails"), [])
      const project = yield* Fixtures.project
      yield* put({ kind: "project", scope_id: project, policy: { deny: true } })
      yield* put({ kind: "route", scope_id: "/services/*" })
      yield* put({ kind: "model", scope_id: "large" })
      yield* put({ kind: "team", scope_id: "blue" })
      const list = yield* ok("GET", layers)
      assert(Array.isArray(list))
      assert.deepStrictEqual(
        list.map((layer) => [at(layer, "kind"), at(layer, "scope_id")]),
        [
          ["team", "blue"],
          ["model", "large"],
          ["route", "/services/*"],
          ["project", project],
          ["global", null]
        ]
      )
      yield* ok("DELETE", `${layers}/${idOf(second)}`)
      assert.strictEqual((yield* call("DELETE", `${layers}/${idOf(second)}`)).status, 404)
    })
  )

  it.effect("presets show what they make of a key's policy", () =>
    Effect.gen(function* () {
      const presets = yield* ok("GET", `${admin}/policy/presets`)
      assert(Array.isArray(presets))
      assert.deepStrictEqual(
        presets.map((preset) => at(preset, "name")),
        [
          "developer",
          "coding_agent",
          "production_worker",
          "read_only_service",
          "external_partner",
          "temporary_debugging"
        ]
      )
      for (const preset of presets) {
        const made = yield* ok("POST", `${admin}/keys`, {
          body: { owner_type: "individual", preset: at(preset, "name") }
        })
        assert.deepStrictEqual(at(made, "key", "policy"), { ...Object(at(preset, "policy")), policy_version: 1 })
      }
      // two prompts of an agent in a minute, with tools, and answers as long as models write
      assert.deepInclude(at(presets, 1, "policy"), {
        allow_tools: true,
        allow_streaming: true,
        tpm_limit: 2_000_000,
        max_output_tokens_per_request: 128_000
      })
    })
  )

  it.effect("a patch changes what it names, and leaves the rest of the layer as it is", () =>
    Effect.gen(function* () {
      const made = yield* ok("POST", layers, {
        body: {
          kind: "team",
          scope_id: "patched",
          policy: { monthly_budget_usd: 50, allowed_models: ["gpt-5*"] },
          shared: { rpm_limit: 9, daily_budget_usd: 3 },
          guardrail_policy: { mandatory_guardrails: ["pii-redact"] }
        }
      })
      const patch = (body: object) => ok("PATCH", `${layers}/${at(made, "id")}`, { body })
      const raised = yield* patch({ policy: { monthly_budget_usd: 60 }, shared: { rpm_limit: null } })
      assert.deepInclude(at(raised, "policy"), {
        monthly_budget_usd: 60,
        allowed_models: ["gpt-5*"],
        policy_version: Number(at(made, "policy", "policy_version")) + 1
      })
      assert.deepInclude(at(raised, "shared"), { rpm_limit: null, daily_budget_usd: 3 })
      assert.deepInclude(at(raised, "guardrail_policy"), { mandatory_guardrails: ["pii-redact"] })
      assert.deepInclude(raised, { kind: "team", scope_id: "patched" })
      const cleared = yield* patch({ policy: null, shared: null, guardrail_policy: null })
      assert.deepInclude(at(cleared, "policy"), { monthly_budget_usd: null, allowed_models: null })
      assert.deepInclude(at(cleared, "shared"), { daily_budget_usd: null })
      assert.deepInclude(at(cleared, "guardrail_policy"), { mandatory_guardrails: [] })
      const moved = yield* call("PATCH", `${layers}/${at(made, "id")}`, { body: { scope_id: "another" } })
      assert.deepInclude(refusalOf(moved), { status: 422, param: "scope_id" })
      yield* ok("DELETE", `${layers}/${at(made, "id")}`)
    })
  )

  it.effect("limits that a layer's keys share are kept, replaced and cleared apart from its policy", () =>
    Effect.gen(function* () {
      yield* fresh
      const put = (body: object) => ok("POST", layers, { body: { kind: "team", scope_id: "blue", ...body } })
      const none = {
        rpm_limit: null,
        tpm_limit: null,
        max_requests_per_day: null,
        max_tokens_per_day: null,
        daily_budget_usd: null,
        monthly_budget_usd: null
      }
      assert.deepStrictEqual(at(yield* put({ policy: { daily_budget_usd: 5 } }), "shared"), none)
      const budgeted = yield* put({ shared: { daily_budget_usd: 20, rpm_limit: 100 } })
      assert.deepStrictEqual(at(budgeted, "shared"), { ...none, daily_budget_usd: 20, rpm_limit: 100 })
      assert.strictEqual(at(budgeted, "policy", "daily_budget_usd"), 5)
      const kept = yield* put({ policy: { deny: true } })
      assert.strictEqual(at(kept, "shared", "daily_budget_usd"), 20)
      assert.deepStrictEqual(at(yield* put({ shared: { rpm_limit: 7 } }), "shared"), { ...none, rpm_limit: 7 })
      const cleared = yield* put({ shared: null })
      assert.deepStrictEqual([at(cleared, "shared"), at(cleared, "policy", "policy_version")], [none, 5])
      const refused = refusalOf(
        yield* call("POST", layers, { body: { kind: "global", shared: { max_cost_per_request: 1 } } })
      )
      assert.deepStrictEqual(refused, { status: 422, code: "invalid_request", param: "shared.max_cost_per_request" })
    })
  )

  it.effect.each([
    [{ kind: "model" }, 400, "invalid_policy_payload", "scope_id"],
    [{ kind: "global", scope_id: "x" }, 400, "invalid_policy_payload", "scope_id"],
    [{ kind: "route", scope_id: "/v1/nothing" }, 400, "invalid_policy_payload", "scope_id"],
    [{ kind: "project", scope_id: "x" }, 400, "invalid_policy_payload", "scope_id"],
    [{ kind: "project", scope_id: nobody }, 404, "missing_project", "scope_id"],
    [{ kind: "key", scope_id: nobody }, 422, "invalid_request", "kind"],
    [{ kind: "global", policy: { allowed_hours_utc: [24] } }, 422, "invalid_request", "policy.allowed_hours_utc.0"],
    [
      { kind: "global", guardrail_policy: { optional_guardrails: ["nothing"] } },
      400,
      "invalid_guardrail_request",
      "guardrail_policy"
    ]
  ] as const)("%j is refused", ([body, status, code, param]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(refusalOf(yield* call("POST", layers, { body })), { status, code, param })
    })
  )
})

suite("Keys and their policies", (it) => {
  it.effect.each([
    ["developer", { allow_tools: true, rpm_limit: 60, tpm_limit: 30_000, daily_budget_usd: 10 }],
    ["production_worker", { allow_tools: false, allow_streaming: true, max_response_body_bytes: 4_194_304 }],
    ["read_only_service", { allowed_routes: ["/summary", "/embeddings"], allowed_providers: ["internal-service"] }],
    ["external_partner", { max_cost_per_request: 0.25, allow_streaming: false, tpm_limit: 10_000 }],
    ["temporary_debugging", { unused_key_auto_disable_after_days: 7, max_request_body_bytes: 131_072 }]
  ] as const)("the preset %s is what a policy begins with", ([preset, policy]) =>
    Effect.gen(function* () {
      const made = yield* ok("POST", keys, {
        body: { owner_type: "individual", preset, policy: { rpm_limit: 3, max_request_body_bytes: null } }
      })
      const {
        max_request_body_bytes: _,
        rpm_limit: __,
        ...kept
      } = { max_request_body_bytes: 0, rpm_limit: 0, ...policy }
      assert.deepInclude(Object(at(made, "key", "policy")), { ...kept, rpm_limit: 3, max_request_body_bytes: null })
      assert.isUndefined(at(made, "key", "preset"))
    })
  )

  it.effect("a key has a team and a guardrail policy: null clears, absent keeps, and a change raises the version", () =>
    Effect.gen(function* () {
      const guardrail_policy = {
        optional_guardrails: ["pii-redact"],
        guardrail_config_overrides: { "pii-redact": { restore_output: false } }
      }
      const made = yield* ok("POST", keys, { body: { owner_type: "individual", team_id: "blue", guardrail_policy } })
      const path = `${keys}/${idOf(made, "key")}`
      assert.strictEqual(at(made, "key", "team_id"), "blue")
      assert.deepStrictEqual(at(made, "key", "guardrail_policy"), {
        mandatory_guardrails: [],
        forbidden_guardrails: [],
        ...guardrail_policy
      })
      const patch = (body: object) => ok("PATCH", path, { body })
      assert.strictEqual(at(yield* patch({ guardrail_policy }), "policy", "policy_version"), 1)
      const forbidden = yield* patch({
        guardrail_policy: { guardrail_config_overrides: {}, forbidden_guardrails: ["pii-redact"] }
      })
      assert.deepStrictEqual(at(forbidden, "guardrail_policy", "optional_guardrails"), ["pii-redact"])
      assert.strictEqual(at(forbidden, "policy", "policy_version"), 2)
      const cleared = yield* patch({ guardrail_policy: null, team_id: null })
      assert.deepStrictEqual(
        [at(cleared, "team_id"), at(cleared, "guardrail_policy", "forbidden_guardrails")],
        [null, []]
      )
      assert.deepInclude(Object(yield* ok("GET", path)), Object(cleared))
    })
  )

  it.effect.each([
    [{ mandatory_guardrails: ["unknown"] }, 400, "invalid_guardrail_request"],
    [{ guardrail_config_overrides: { unknown: {} } }, 400, "invalid_guardrail_request"],
    [
      { forbidden_guardrails: ["pii-redact"], guardrail_config_overrides: { "pii-redact": {} } },
      403,
      "guardrail_forbidden"
    ],
    [{ guardrail_config_overrides: { "pii-redact": 5 } }, 422, "invalid_request"],
    [{ mandatory_guardrails: "pii-redact" }, 422, "invalid_request"]
  ] as const)("the guardrail policy %j is refused, and nothing is written", ([guardrail_policy, status, code]) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const count = sql`SELECT count(*)::int AS n FROM api_keys`
      const before = yield* count
      const refused = yield* call("POST", keys, { body: { owner_type: "individual", guardrail_policy } })
      assert.deepInclude(refusalOf(refused), { status, code })
      assert.deepStrictEqual(yield* count, before)
      const patched = yield* call("PATCH", `${keys}/${yield* Fixtures.key}`, { body: { guardrail_policy } })
      assert.deepInclude(refusalOf(patched), { status, code })
    })
  )
})

const decodeDenied = Schema.decodeUnknownEffect(
  Schema.Struct({
    final_decision: Schema.Struct({ message: Schema.String, layers: Schema.Array(Schema.String) }),
    reasons: Schema.Array(
      Schema.Struct({ denies: Schema.Array(Schema.Struct({ check: Schema.String, message: Schema.String })) })
    )
  })
)

suite("Policy simulation", (it) => {
  it.effect("a layer that this version cannot decode denies, and both explanations say why", () =>
    Effect.gen(function* () {
      yield* fresh
      const { sql } = yield* Database
      yield* sql`INSERT INTO policy_layers (layer_kind, policy) VALUES ('global', '{"max_things":3}')`
      const made = yield* ok("POST", keys, { body: { owner_type: "individual" } })
      const simulated = yield* simulate({
        key_id: idOf(made, "key"),
        path: "/v1/chat/completions",
        body: { model: "m" }
      })
      const cannot = "This version of the program cannot decode the stored policy"
      const { final_decision, reasons } = yield* Effect.orDie(decodeDenied(simulated))
      assert.deepStrictEqual(final_decision.layers, ["global (unreadable)"])
      assert.include(final_decision.message, cannot)
      assert.include(reasons[0]?.denies[0]?.message, cannot)
      yield* fresh
    })
  )

  it.effect("answers with the merge, the projections and each layer's reasons; a denial is an answer too", () =>
    Effect.gen(function* () {
      yield* fresh
      const project_id = yield* Fixtures.project
      const made = yield* ok("POST", keys, {
        body: { project_id, policy: { allowed_models: ["large", "small"], rpm_limit: 9 } }
      })
      const key_id = idOf(made, "key")
      yield* ok("POST", layers, {
        body: {
          kind: "project",
          scope_id: project_id,
          policy: { allowed_models: ["small"], rpm_limit: 4 },
          shared: { tpm_limit: 900, monthly_budget_usd: 20 }
        }
      })
      yield* ok("POST", layers, { body: { kind: "route", scope_id: "/v1/messages", policy: { deny: true } } })
      const request = { key_id, path: "/v1/chat/completions?x=1", body: { model: "large", messages: [] } }
      const { effective_policy, ...denied } = Object(yield* simulate(request))
      const { allow_streaming, allowed_models, rpm_limit, unpriced_models } = effective_policy
      assert.deepStrictEqual(
        [allowed_models, rpm_limit, allow_streaming, unpriced_models],
        [["small"], 4, true, "flat"]
      )
      assert.deepStrictEqual(denied, {
        auth: { key_id, source: "stored_key" },
        route_match: { route: "/v1/chat/completions", provider: "upstream", service_name: null },
        policy_merge: {
          policy_version: 1,
          deny: false,
          allowed_routes: null,
          allowed_models: ["small"],
          allowed_providers: null,
          allowed_services: null,
          applied_layers: [
            { kind: "project", scope_id: project_id, policy_version: 1 },
            { kind: "key", scope_id: key_id, policy_version: 1 }
          ]
        },
        warnings: [
          "The effective model list excludes large: a value is allowed only if the lists of all policy layers and of the key allow it."
        ],
        guardrail_plan: [],
        rate_limit_projection: { rpm_limit: 4, tpm_limit: null, max_requests_per_day: null, max_tokens_per_day: null },
        shared_limits: [
          {
            layer: `project:${project_id}`,
            rpm_limit: null,
            tpm_limit: 900,
            max_requests_per_day: null,
            max_tokens_per_day: null,
            daily_budget_usd: null,
            monthly_budget_usd: 20
          }
        ],
        budget_projection: { daily_budget_usd: null, monthly_budget_usd: null, max_cost_per_request: null },
        limit_raises: [],
        reasons: [
          {
            kind: "project",
            scope_id: project_id,
            policy_version: 1,
            denies: [
              {
                check: "model",
                code: "policy_denied",
                message: `This key's policies do not allow the requested model "large" (allowed: small).`
              }
            ]
          },
          { kind: "key", scope_id: key_id, policy_version: 1, denies: [] }
        ],
        final_decision: {
          allowed: false,
          error_code: "policy_denied",
          message: `This key's policies do not allow the requested model "large" (allowed: small).`,
          check: "model",
          layers: [`project:${project_id}`],
          limits_checked: false
        }
      })
      assert.deepStrictEqual(decisionOf(yield* simulate({ ...request, body: { model: "small" } })), [true, null])
      assert.deepStrictEqual(decisionOf(yield* simulate({ ...request, path: "/v1/messages" })), [
        false,
        "policy_denied"
      ])
    })
  )

  it.effect("supposes what it is told: a preset, a policy, a team, sizes, a cost, a provider, guardrails", () =>
    Effect.gen(function* () {
      yield* fresh
      yield* ok("POST", layers, { body: { kind: "team", scope_id: "blue", policy: { allow_tools: false } } })
      const path = "/v1/responses"
      const cases = [
        [{ path }, true, null],
        [{ path, preset: "read_only_service" }, false, "policy_denied"],
        // A new key with a budget refuses models without a price, and this request names none.
        [
          { path, preset: "read_only_service", policy: { allowed_routes: null, allowed_providers: null } },
          false,
          "policy_denied"
        ],
        [
          {
            path,
            preset: "read_only_service",
            policy: { allowed_routes: null, allowed_providers: null, unpriced_models: "flat" }
          },
          true,
          null
        ],
        [{ path, policy: { max_request_body_bytes: 10 }, request_body_bytes: 11 }, false, "request_body_too_large"],
        [{ path, request_body_bytes: 2_000_000 }, false, "request_body_too_large"],
        [{ path, policy: { max_response_body_bytes: 10 }, response_body_bytes: 11 }, false, "response_body_too_large"],
        [{ path, response_body_bytes: 2_000_000 }, false, "response_body_too_large"],
        [{ path, response_body_bytes: 2_000_000, body: { stream: true } }, true, null],
        [{ path, policy: { max_cost_per_request: 0.5 }, estimated_cost_usd: 0.51 }, false, "policy_denied"],
        [{ path, policy: { allowed_providers: ["upstream"] }, provider: "compat" }, false, "policy_denied"],
        [{ path, team_id: "blue", body: { tools: [{}] } }, false, "policy_denied"],
        [{ path, body: { stream: "yes" } }, false, "invalid_request_body"],
        [
          { path: "/services/ocr/scan", service_name: "ocr", policy: { allowed_services: ["summary"] } },
          false,
          "policy_denied"
        ],
        [{ path, service_name: "ocr", policy: { allowed_services: ["summary"] } }, false, "policy_denied"],
        [{ path: "/v1/models", method: "GET" }, true, null]
      ] as const
      for (const [body, allowed, code] of cases) {
        assert.deepStrictEqual(decisionOf(yield* simulate(body)), [allowed, code], JSON.stringify(body))
      }
      const planned = yield* simulate({ path, guardrail_policy: { mandatory_guardrails: ["pii-redact"] } })
      assert.deepStrictEqual(at(planned, "guardrail_plan"), ["pii-redact"])
      const mode = "/admin-ui/admin/family-a-routes/responses/mode"
      yield* ok("PATCH", mode, { body: { mode: "direct_upstream_passthrough" } })
      const direct = yield* simulate({ path, guardrail_policy: { mandatory_guardrails: ["pii-redact"] } })
      assert.deepStrictEqual(at(direct, "guardrail_plan"), [])
      yield* ok("PATCH", mode, { body: { mode: "managed_by_gateway" } })
      assert.deepStrictEqual(at(planned, "auth"), { key_id: null, source: "default_policy" })
      yield* ok("POST", layers, { body: { kind: "global", policy: { allowed_models: ["a"] } } })
      const disjoint = yield* simulate({ path, policy: { allowed_models: ["b"] }, body: { model: "c" } })
      assert.deepStrictEqual(
        at(disjoint, "warnings", 1),
        "allowed_models of global and key have nothing in common, so no value is allowed."
      )
      assert.deepStrictEqual(at(disjoint, "final_decision", "layers"), ["global", "key"])
    })
  )

  it.effect("knows registered services as the gateway does: by pattern and name, with their limits and prices", () =>
    Effect.gen(function* () {
      yield* fresh
      const name = yield* Fixtures.service
      const body = {
        route_pattern: `/internal/${name}/*`,
        allowed_methods: ["POST", "PUT"],
        max_body_bytes: 100,
        cost_mode: "fixed",
        estimated_cost_usd: 0.2,
        pricing_rules: [{ json_pointer: "/quality", equals: "high", cost_mode: "fixed", estimated_cost_usd: 3 }]
      }
      const service = `${admin}/services/${name}`
      yield* ok("PATCH", service, { body })
      const path = `/internal/${name}/scan?page=1`
      const cheap = { max_cost_per_request: 1 }
      const cases = [
        [{ path }, true, null],
        [{ path, method: "PUT", body: [1, 2] }, true, null],
        [{ path: `/services/${name}` }, true, null],
        [{ path: `/services/${name}`, method: "GET" }, false, "unsupported_route"],
        [{ path: "/services/nowhere/x" }, false, "missing_service"],
        [{ path: "/services/No_Name" }, false, "invalid_service_payload"],
        [{ path, request_body_bytes: 101 }, false, "request_body_too_large"],
        [{ path, response_body_bytes: 5_000_000 }, true, null],
        [{ path, policy: cheap, body: { quality: "low" } }, true, null],
        [{ path, policy: cheap, body: { quality: "high" } }, false, "policy_denied"],
        [{ path, policy: { allowed_services: ["other"] } }, false, "policy_denied"],
        [{ path, policy: { allowed_services: ["other"] }, service_name: "other" }, true, null]
      ] as const
      for (const [simulation, allowed, code] of cases) {
        assert.deepStrictEqual(decisionOf(yield* simulate(simulation)), [allowed, code], JSON.stringify(simulation))
      }
      assert.deepStrictEqual<unknown>(at(yield* simulate({ path }), "route_match"), {
        route: "/services/*",
        provider: "internal-service",
        service_name: name
      })
      yield* ok("PATCH", service, { body: { credential: null } })
      assert.deepStrictEqual(decisionOf(yield* simulate({ path })), [false, "incomplete_service"])
      yield* ok("POST", `${service}/disable`)
      assert.deepStrictEqual(decisionOf(yield* simulate({ path })), [false, "disabled_service"])
      const answer = yield* call("POST", `${admin}/policy/simulate`, { body: { path, method: "GET" } })
      assert.deepStrictEqual(refusalOf(answer), { status: 404, code: "unsupported_route", param: "path" })
    })
  )

  it.effect("knows what only the gateway could tell: bodies in queries, single models, work that runs later", () =>
    Effect.gen(function* () {
      yield* fresh
      const put = (body: object) => ok("POST", layers, { body })
      const batches = { path: "/providers/compat/v1/batches" }
      const single = { path: "/v1/models/large", method: "GET" }
      const decided = (simulation: object) => Effect.map(simulate(simulation), decisionOf)
      assert.deepStrictEqual(yield* decided(batches), [true, null])
      assert.deepStrictEqual(yield* decided(single), [true, null])
      assert.deepStrictEqual(yield* decided({ path: "/v1/chat/completions?model=m", body: {} }), [
        false,
        "invalid_request_body"
      ])
      yield* put({ kind: "team", scope_id: "blue", shared: { tpm_limit: 9 } })
      const shared = yield* simulate({ ...batches, team_id: "blue" })
      assert.deepStrictEqual(decisionOf(shared), [false, "policy_denied"])
      assert.deepStrictEqual<unknown>(at(shared, "final_decision", "layers"), ["team:blue"])
      assert.deepStrictEqual(yield* decided(batches), [true, null])
      yield* put({ kind: "model", scope_id: "large", policy: { deny: true } })
      assert.deepStrictEqual(yield* decided(batches), [false, "policy_denied"])
      assert.deepStrictEqual(yield* decided(single), [false, "object_not_found"])
      yield* fresh
    })
  )

  it.effect("tells a key or a route that refuses by itself, and changes nothing", () =>
    Effect.gen(function* () {
      yield* fresh
      const key_id = yield* Fixtures.key
      const path = "/v1/embeddings"
      yield* ok("POST", `${keys}/${key_id}/disable`)
      assert.deepStrictEqual(decisionOf(yield* simulate({ key_id, path })), [false, "disabled_virtual_key"])
      yield* ok("POST", `${admin}/family-a-routes/embeddings/disable`)
      assert.deepStrictEqual(decisionOf(yield* simulate({ path })), [false, "disabled_route"])
      yield* ok("POST", `${admin}/family-a-routes/embeddings/enable`)
      const unused = yield* ok("POST", keys, {
        body: { owner_type: "individual", policy: { unused_key_auto_disable_after_days: 1 } }
      })
      const id = idOf(unused, "key")
      const { sql } = yield* Database
      yield* sql`UPDATE api_keys SET created_at = now() - interval '2 days' WHERE id = ${id}`
      assert.deepStrictEqual(decisionOf(yield* simulate({ key_id: id, path })), [false, "disabled_virtual_key"])
      assert.strictEqual(at(yield* ok("GET", `${keys}/${id}`), "disabled"), false)
    })
  )

  it.effect.each([
    [{ path: "/v1/nothing" }, 404, "unsupported_route", "path"],
    [{ path: "/v1/../models", method: "GET" }, 404, "unsupported_route", "path"],
    [{ path: "/v1/models" }, 404, "unsupported_route", "path"],
    [{ path: "/v1/responses", key_id: nobody }, 404, "not_found", "key_id"],
    [
      { path: "/v1/responses", guardrail_policy: { mandatory_guardrails: ["x"] } },
      400,
      "invalid_guardrail_request",
      "guardrail_policy"
    ],
    [{}, 422, "invalid_request", "path"],
    [{ path: "/v1/responses", polici: {} }, 422, "invalid_request", "polici"]
  ] as const)("%j is refused", ([body, status, code, param]) =>
    Effect.gen(function* () {
      const answer = yield* call("POST", `${admin}/policy/simulate`, { body })
      assert.deepStrictEqual(refusalOf(answer), { status, code, param })
    })
  )
})

suite("Policy explanation", (it) => {
  it.effect("says what was decided then, what would be now, and what was changed in between", () =>
    Effect.gen(function* () {
      yield* fresh
      const { sql } = yield* Database
      const project_id = yield* Fixtures.project
      const key_id = idOf(yield* ok("POST", keys, { body: { project_id, policy: { max_cost_per_request: 1 } } }), "key")
      const record = (request_id: string, row: object) =>
        sql`INSERT INTO usage_events ${sql.insert({
          id: crypto.randomUUID(),
          created_at: new Date(Date.now() - 1000),
          request_id,
          key_id,
          project_id,
          route: "/v1/chat/completions",
          model: "large",
          provider: "upstream",
          status: "failure",
          status_code: 403,
          error_code: "policy_denied",
          latency_ms: 1,
          usage_source: "status_only",
          cost_source: "none",
          streamed: true,
          policy_version: 3,
          estimated_input_tokens: 12,
          ...row
        })}`
      yield* Effect.sleep("1100 millis")
      yield* record("denied", { denial: JSON.stringify({ check: "streaming", layer: "global" }) })
      const explain = (id: string) => ok("GET", `${admin}/policy/explain/${id}`)
      const before = yield* explain("denied")
      assert.deepInclude(Object(before), {
        request_id: "denied",
        key_id,
        decided: {
          sentence: "This key may not stream responses.",
          allowed: false,
          status_code: 403,
          error_code: "policy_denied",
          check: "streaming",
          layer: "global",
          policy_version: 3,
          checks: [
            ...["deny", "route", "provider", "hours", "concurrency", "later_work", "service", "model"].map((check) => ({
              check,
              result: "passed"
            })),
            { check: "streaming", result: "refused" }
          ],
          limit_raises: []
        },
        policy_changed: false,
        changes: []
      })
      assert.deepInclude(Object(at(before, "now", "decision")), { allowed: true, check: null })
      assert.deepStrictEqual(at(before, "now", "unchecked"), ["cost"])
      const checksNow = at(before, "now", "checks")
      assert(Array.isArray(checksNow))
      assert.deepStrictEqual(checksNow.slice(-2), [
        { check: "cost", result: "unchecked" },
        { check: "price", result: "passed" }
      ])

      yield* ok("POST", layers, { body: { kind: "team", scope_id: "another", policy: { deny: true } } })
      yield* ok("POST", layers, { body: { kind: "model", scope_id: "large", policy: { allow_streaming: false } } })
      yield* ok("PATCH", `${keys}/${key_id}`, { body: { policy: { max_input_tokens_per_request: 11 } } })
      const after = yield* explain("denied")
      assert.strictEqual(at(after, "policy_changed"), true)
      const changes = at(after, "changes")
      assert(Array.isArray(changes))
      assert.deepStrictEqual(
        changes.map((change) => at(change, "action")),
        ["keys:update", "policies:upsert-layer"]
      )
      assert.deepInclude(Object(at(after, "now", "decision")), {
        allowed: false,
        check: "streaming",
        layers: ["model:large"]
      })
      assert.deepStrictEqual(at(after, "now", "checks", 8), { check: "streaming", result: "refused" })
      assert.strictEqual(at(after, "now", "checks", 9), undefined)
      const reasons = at(after, "now", "reasons")
      assert(Array.isArray(reasons))
      assert.deepStrictEqual(
        reasons.map((layer) => [at(layer, "kind"), at(layer, "denies", 0, "check")]),
        [
          ["model", "streaming"],
          ["key", "input_tokens"]
        ]
      )

      // whom it was about nobody knows any more
      const lost = at(yield* ok("POST", layers, { body: { kind: "team", scope_id: "unread" } }), "id")
      yield* sql`UPDATE policy_layers SET policy = '{"allowed_routes":["/v9"]}' WHERE id = ${String(lost)}`
      yield* ok("DELETE", `${layers}/${lost}`)
      const last = at(yield* explain("denied"), "changes", 0)
      assert.deepInclude(Object(last), { action: "policies:delete-layer", target_id: lost })
    })
  )

  it.effect.each<[what: string, policy: object, row: object, check: string | null, unchecked: ReadonlyArray<string>]>([
    [
      "a count of tokens costs nothing",
      { unpriced_models: "refuse" },
      { route: "/v1/messages/count_tokens", model: "unheard-of" },
      null,
      []
    ],
    ["a model without a price", { unpriced_models: "refuse" }, { model: "unheard-of" }, "price", ["price"]],
    ["no model, where it must have a price", { unpriced_models: "refuse" }, {}, "price", ["price"]],
    ["no model, where there is a list", { allowed_models: ["large"] }, {}, "model", ["model"]],
    ["a model of the list", { allowed_models: ["large"] }, { model: "large" }, null, ["model"]],
    [
      "a list of batches",
      { unpriced_models: "refuse", allowed_models: ["large"] },
      { route: "/v1/messages/batches", estimated_input_tokens: null },
      null,
      ["model"]
    ]
  ])("decides as the gateway does: %s", ([, policy, row, check, unchecked]) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const project_id = yield* Fixtures.project
      const key_id = idOf(yield* ok("POST", keys, { body: { project_id, policy } }), "key")
      const request_id = crypto.randomUUID()
      yield* sql`INSERT INTO usage_events ${sql.insert({
        id: crypto.randomUUID(),
        created_at: new Date(),
        request_id,
        key_id,
        project_id,
        route: "/v1/chat/completions",
        provider: "upstream",
        status: "success",
        status_code: 200,
        latency_ms: 1,
        usage_source: "reported",
        cost_source: "none",
        streamed: false,
        estimated_input_tokens: 12,
        ...row
      })}`
      const now = at(yield* ok("GET", `${admin}/policy/explain/${request_id}`), "now")
      assert.deepInclude(Object(at(now, "decision")), { allowed: check === null, check })
      assert.deepStrictEqual(at(now, "unchecked"), unchecked)
    })
  )

  it.effect("of requests with one id the latest; of wildcard traffic as of any other; of none nothing", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const key_id = yield* Fixtures.key
      const record = (age: number, row: object) =>
        sql`INSERT INTO usage_events ${sql.insert({
          id: crypto.randomUUID(),
          created_at: new Date(Date.now() - age),
          request_id: "twice",
          key_id,
          route: "/v1/responses",
          provider: "upstream",
          status: "success",
          status_code: 200,
          latency_ms: 1,
          usage_source: "reported",
          cost_source: "none",
          streamed: false,
          ...row
        })}`
      yield* record(5000, { status_code: 500 })
      yield* record(1000, { status_code: 200 })
      const explain = (id: string) => call("GET", `${admin}/policy/explain/${id}`)
      const latest = yield* explain("twice")
      assert.deepInclude(Object(at(latest.json, "decided")), { allowed: true, status_code: 200, policy_version: null })
      // the record of a request whose body was not read says nothing of the checks that need one
      const passed = at(latest.json, "decided", "checks")
      assert(Array.isArray(passed))
      assert.deepStrictEqual(passed.at(-1), { check: "service", result: "passed" })
      yield* record(0, { request_id: "wild", route: "/upstream/*" })
      assert.deepInclude(Object(at((yield* explain("wild")).json, "now")), { unchecked: [] })
      assert.deepStrictEqual(refusalOf(yield* explain("nobody")), { status: 404, code: "not_found", param: null })
    })
  )
})
