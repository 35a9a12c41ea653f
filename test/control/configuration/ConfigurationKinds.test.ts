import { assert } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import type { HttpClient } from "effect/http"
import fc from "fast-check"
import { Database } from "../../../src/services/Database.ts"
import { documents } from "../ConfigurationDocuments.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "../Listener.ts"

const configuration = `${admin}/configuration`

const exported = ok("GET", configuration)
const plan = (document: unknown) => ok("POST", `${configuration}/plan`, { body: document })
const apply = (document: unknown, base_hash: unknown) =>
  call("POST", `${configuration}/apply`, { body: { base_hash, document } })

/** Applied against what is now. */
const applied = Effect.fnUntraced(function* (document: unknown) {
  const answer = yield* apply(document, at(yield* plan(document), "base_hash"))
  assert.strictEqual(answer.status, 200, answer.text)
  return answer.json
})

const listed = (json: Schema.Json | undefined): ReadonlyArray<Schema.Json> => {
  assert(Array.isArray(json))
  return json
}

const changesOf = (planned: Schema.Json) =>
  listed(at(planned, "changes")).map((change) => `${at(change, "action")} ${at(change, "section")} ${at(change, "id")}`)

const summariesOf = (planned: Schema.Json) => listed(at(planned, "changes")).map((change) => at(change, "summary"))

/** As a database is that nobody has configured yet. */
const emptied = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`TRUNCATE projects, api_keys, provider_configs, upstream_credential_mappings, model_prices, policy_layers,
    service_registrations, studio_connection_settings, gateway_auth_settings, upstream_passthrough_settings CASCADE`
  yield* sql`INSERT INTO upstream_passthrough_settings DEFAULT VALUES`
  yield* sql`DELETE FROM guardrail_definitions WHERE provider_kind = 'http'`
  yield* sql`UPDATE guardrail_definitions SET default_on = false, enabled = true`
  yield* sql`UPDATE canonical_routes SET enabled = true, timeout_ms = 120000`
})

const secret = "sk-canary-configuration"

/** A configuration with something of every kind in it, and a secret wherever there may be one. */
const filled = Effect.gen(function* () {
  yield* emptied
  const project_id = idOf(yield* ok("POST", `${admin}/projects`, { body: { name: "team" } }))
  yield* ok("POST", `${admin}/guardrails`, {
    body: {
      name: "toxicity",
      endpoint_url: "https://guard.example/check",
      failure_policy: "fail_open",
      bearer_token: secret,
      runtime_config: { threshold: 0.5 }
    }
  })
  yield* ok("POST", `${admin}/services`, {
    body: {
      name: "ocr",
      project_id,
      upstream_base_url: "https://ocr.example",
      credential: secret,
      cost_mode: "fixed",
      estimated_cost_usd: 0.1,
      pricing_rules: [{ path: "/pages", equals: 2, cost_mode: "fixed", estimated_cost_usd: 0.2 }]
    }
  })
  yield* ok("PATCH", `${admin}/projects/${project_id}`, { body: { service_names: ["ocr"] } })
  const key = yield* ok("POST", `${admin}/keys`, {
    body: { project_id, team_id: "red", guardrail_policy: { mandatory_guardrails: ["toxicity"] } }
  })
  const own = yield* ok("POST", `${admin}/keys`, { body: { owner_type: "individual", service_names: ["ocr"] } })
  for (const layer of [
    { kind: "global", policy: { rpm_limit: 100 } },
    { kind: "project", scope_id: project_id, policy: { allowed_models: ["a", "b"] } },
    { kind: "team", scope_id: "red", guardrail_policy: { optional_guardrails: ["toxicity"] } }
  ]) {
    yield* ok("POST", `${admin}/policy-layers`, { body: layer })
  }
  yield* ok("POST", `${admin}/providers`, {
    body: { provider: "upstream", name: "main", base_url: "https://main.example", credential: secret }
  })
  for (const [scope, target_id] of [
    ["project", project_id],
    ["key", idOf(own, "key")]
  ]) {
    yield* ok("POST", `${admin}/providers/upstream-credentials`, { body: { scope, target_id, credential: secret } })
  }
  yield* ok("PUT", `${admin}/model-prices/a`, { body: { input_usd_per_million: 1.5, output_usd_per_million: 2 } })
  yield* ok("PATCH", `${admin}/providers/upstream-passthrough`, {
    body: { enabled: true, allowed_paths: ["/v1/files"], ui_exposure: "operator_only" }
  })
  yield* ok("PATCH", `${admin}/studio/connection`, { body: { base_url: "https://studio.example", token: secret } })
  yield* ok("PATCH", `${admin}/auth/front-door`, {
    body: {
      svc_key_header: "X-Team-Key",
      trusted_gateway_header_enabled: true,
      trusted_gateway_header_secret: secret
    }
  })
  return {
    project_id,
    key: idOf(key, "key"),
    own: idOf(own, "key"),
    raw: [key, own].map((k) => String(at(k, "raw_key")))
  }
})

/** What is sealed, in every place. */
const sealed = Effect.flatMap(
  Database,
  ({ sql }) => sql`
    SELECT (SELECT sealed_token FROM guardrail_definitions WHERE name = 'toxicity') AS guardrail,
      (SELECT sealed_credential FROM service_registrations WHERE name = 'ocr') AS service,
      (SELECT sealed_credential FROM provider_configs) AS provider,
      (SELECT count(sealed_credential)::int FROM upstream_credential_mappings) AS mappings,
      (SELECT sealed_token FROM studio_connection_settings) AS studio,
      (SELECT sealed_secret FROM gateway_auth_settings) AS front_door`
)

const noDocument = { format: "svc-configuration/1" }

suite("Configuration as code, every kind", (it) => {
  it.effect("is exported whole, under names, without a secret; planning the export changes nothing", () =>
    Effect.gen(function* () {
      const { key, own, raw } = yield* filled
      const answer = yield* call("GET", configuration)
      assert.notInclude(answer.text, "canary")
      for (const secret of raw) assert.notInclude(answer.text, secret.slice(16))
      for (const value of Object.values(Object((yield* sealed)[0]))) {
        if (typeof value === "string") assert.notInclude(answer.text, value)
      }
      const document = answer.json
      assert.deepStrictEqual(at(document, "service_links"), [{ project: "team", service_names: ["ocr"] }])
      assert.deepInclude(at(document, "services", 0), {
        name: "ocr",
        project: "team",
        route_pattern: "/ocr",
        upstream_base_url: "https://ocr.example",
        pricing_rules: [
          { name: null, json_pointer: "/pages", equals: "2", cost_mode: "fixed", estimated_cost_usd: 0.2 }
        ]
      })
      assert.deepStrictEqual(
        listed(at(document, "guardrails")).map((entry) => [at(entry, "name"), at(entry, "endpoint_url")]),
        [
          ["pii-redact", null],
          ["toxicity", "https://guard.example/check"]
        ]
      )
      const keys = new Map(listed(at(document, "keys")).map((entry) => [at(entry, "id"), entry]))
      assert.deepInclude(keys.get(key), { team_id: "red", service_names: [], project: "team" })
      assert.deepStrictEqual(at(keys.get(key), "guardrail_policy", "mandatory_guardrails"), ["toxicity"])
      assert.deepInclude(keys.get(own), { team_id: null, service_names: ["ocr"], project: null })
      assert.sameDeepMembers(
        listed(at(document, "policy_layers")).map((layer) => [at(layer, "kind"), at(layer, "scope")]),
        [
          ["global", null],
          ["project", "team"],
          ["team", "red"]
        ]
      )
      assert.deepInclude(at(document, "upstream_passthrough"), { enabled: true, allowed_paths: ["/v1/files"] })
      assert.deepStrictEqual(at(document, "studio_connection"), { base_url: "https://studio.example" })
      assert.deepInclude(at(document, "front_door"), {
        svc_key_header: "X-Team-Key",
        trusted_gateway_header_enabled: true
      })
      const planned = yield* plan(document)
      assert.deepStrictEqual(at(planned, "changes"), [])
      assert.notInclude(JSON.stringify(planned), "canary")
      assert.deepStrictEqual(yield* plan(noDocument), planned)
    })
  )

  it.effect("applied to an empty installation it makes the same, but for secrets and keys", () =>
    Effect.gen(function* () {
      const { own } = yield* filled
      const { keys: _, ...whole } = Object(yield* exported)
      const document = {
        ...whole,
        credential_mappings: listed(whole.credential_mappings).filter((entry) => at(entry, "target") !== own)
      }
      yield* emptied
      assert.isUndefined(at(yield* exported, "front_door"))

      // the one rule that asks for a secret: it is said before the header is trusted
      const refused = yield* apply(document, at(yield* plan(document), "base_hash"))
      assert.deepInclude(refusalOf(refused), { code: "invalid_configuration_document", param: "front_door" })
      assert.match(String(at(refused.json, "error", "message")), /trusted_gateway_header_secret must be set/)
      yield* ok("PATCH", `${admin}/auth/front-door`, { body: { trusted_gateway_header_secret: secret } })

      yield* applied(document)
      assert.deepStrictEqual(yield* exported, { ...document, keys: [] })
      assert.deepStrictEqual(at(yield* plan(document), "changes"), [])
      const service = yield* ok("GET", `${admin}/services/ocr`)
      assert.deepStrictEqual(at(service, "missing_runtime_fields"), ["credential"])
    })
  )

  it.effect("secrets stay where they are when what they belong to changes", () =>
    Effect.gen(function* () {
      yield* filled
      const before = yield* sealed
      const document = Object(yield* exported)
      const changed = {
        ...noDocument,
        guardrails: [{ ...Object(at(document, "guardrails", 1)), timeout_ms: 2000 }],
        services: [{ ...Object(at(document, "services", 0)), timeout_ms: 2000 }],
        providers: [{ ...Object(at(document, "providers", 0)), base_url: "HTTPS://Main.example:443" }],
        studio_connection: { base_url: "https://studio.example/below" },
        front_door: { ...document.front_door, clock_skew_seconds: 1 }
      }
      assert.sameMembers(changesOf(yield* applied(changed)), [
        "update guardrails toxicity",
        "update services ocr",
        "update studio_connection singleton",
        "update front_door singleton"
      ])
      assert.deepStrictEqual(yield* sealed, before)
      yield* applied({ ...noDocument, studio_connection: { base_url: null } })
      assert.deepInclude(yield* ok("GET", `${admin}/studio/connection`), { source: "unset", token_configured: false })
    })
  )

  it.effect("a document that moves an address to another origin takes no secret along, and its plan says so", () =>
    Effect.gen(function* () {
      yield* filled
      const [before] = yield* sealed
      const document = Object(yield* exported)
      const changed = {
        ...noDocument,
        guardrails: [{ ...Object(at(document, "guardrails", 1)), endpoint_url: "https://other.example/check" }],
        services: [{ ...Object(at(document, "services", 0)), upstream_base_url: "http://ocr.example" }],
        providers: [{ ...Object(at(document, "providers", 0)), base_url: "https://main.example:8443" }],
        studio_connection: { base_url: "https://other.example" }
      }
      const changes = at(yield* plan(changed), "changes")
      assert(Array.isArray(changes))
      for (const change of changes) assert.match(String(at(change, "summary")), /credential is removed/)
      yield* applied(changed)
      const removed = { guardrail: null, service: null, provider: null, studio: null }
      assert.deepStrictEqual(yield* sealed, [{ ...before, ...removed }])
      yield* applied({ ...noDocument, studio_connection: { base_url: null } })
    })
  )

  it.effect("says what a layer and a key lose and gain, and how many keys are under the layer", () =>
    Effect.gen(function* () {
      const { key } = yield* filled
      const document = Object(yield* exported)
      const [held] = listed(document.keys).filter((entry) => at(entry, "id") === key)
      const planned = yield* plan({
        ...noDocument,
        keys: [{ ...Object(held), team_id: "blue", guardrail_policy: { forbidden_guardrails: ["toxicity"] } }],
        policy_layers: [
          { kind: "global", scope: null, policy: { rpm_limit: 10 }, guardrail_policy: {} },
          { kind: "project", scope: "team", policy: {}, guardrail_policy: {} },
          { kind: "model", scope: "a", policy: {}, guardrail_policy: { mandatory_guardrails: ["pii-redact"] } },
          { kind: "model", scope: "b", policy: {}, guardrail_policy: {} },
          { kind: "team", scope: "blue", policy: {}, shared: { daily_budget_usd: 20 }, guardrail_policy: {} }
        ]
      })
      assert.sameMembers(summariesOf(planned).map(String), [
        `Key ${key} has toxicity among its forbidden_guardrails; no longer has toxicity among its mandatory_guardrails; has team_id blue instead of red.`,
        "Policy layer global, which covers 2 keys, loses: its rpm_limit falls from 100 to 10.",
        "Policy layer project/team, which covers 1 key, gains all models (it had a, b).",
        "Policy layer team/red, which covers 1 key, no longer has toxicity among its optional_guardrails.",
        "Policy layer model/a, which covers 2 keys, has pii-redact among its mandatory_guardrails.",
        "Policy layer model/b, which covers 2 keys, restricts nothing.",
        "Policy layer team/blue, which covers 0 keys, loses: its shared daily_budget_usd is 20, where there was none."
      ])
    })
  )

  it.effect("what is named is there before what names it, and goes after it", () =>
    Effect.gen(function* () {
      const { own } = yield* filled
      const document = Object(yield* exported)
      const [key] = listed(document.keys).filter((entry) => at(entry, "id") === own)
      const guardrail = { ...Object(at(document, "guardrails", 1)), name: "another" }
      const next = {
        ...document,
        projects: [{ name: "next" }],
        guardrails: [guardrail],
        services: [
          { ...Object(at(document, "services", 0)), name: "vision", project: "next", route_pattern: "/vision" }
        ],
        service_links: [{ project: "next", service_names: ["vision"] }],
        keys: listed(document.keys).map((entry) => ({
          ...Object(entry),
          ...(entry === key ? { service_names: ["vision"] } : { project: "next" }),
          guardrail_policy: { mandatory_guardrails: ["another"] }
        })),
        policy_layers: [
          { kind: "project", scope: "next", policy: {}, guardrail_policy: { optional_guardrails: ["another"] } }
        ],
        credential_mappings: []
      }
      const done = yield* applied(next)
      assert.includeMembers(changesOf(done), [
        "delete guardrails toxicity",
        "delete services ocr",
        "delete projects team"
      ])
      assert.notInclude(changesOf(done), "delete guardrails pii-redact")
      assert.deepStrictEqual(at(yield* plan(next), "changes"), [])
      yield* applied(document)
      assert.deepStrictEqual(yield* exported, document)
    })
  )

  it.effect("is refused as a whole when one part takes away what another names, and by the rules of each kind", () =>
    Effect.gen(function* () {
      yield* filled
      const document = Object(yield* exported)
      const base = at(yield* plan(document), "base_hash")
      const builtIn = Object(at(document, "guardrails", 0))
      const guardrail = Object(at(document, "guardrails", 1))
      const service = Object(at(document, "services", 0))
      for (const [section, value, blamed, message] of [
        ["guardrails", [], "keys", /contradicts another part of the document.*guardrail_policy\.mandatory_guardrails/],
        ["services", [], "service_links", /service_links team contradicts another part/],
        ["guardrails", [guardrail, { ...builtIn, description: "mine" }], "guardrails", /check description/],
        [
          "guardrails",
          [guardrail, { ...builtIn, name: "own" }],
          "guardrails",
          /own: This gateway has no built-in guardrail/
        ],
        ["guardrails", [{ ...guardrail, endpoint_url: "ftp://x" }], "guardrails", /endpoint_url must be an http/],
        ["services", [{ ...service, project: "nobody" }], "services", /: There is no project nobody\./],
        ["services", [{ ...service, route_pattern: "/v1/*" }], "services", /must not cover \/v1/],
        ["service_links", [{ project: "team", service_names: ["none"] }], "service_links", /no service named none/],
        [
          "policy_layers",
          [{ kind: "project", scope: "nobody", policy: {}, guardrail_policy: {} }],
          "policy_layers",
          /project\/nobody: There is no project nobody\./
        ],
        [
          "policy_layers",
          [{ kind: "route", scope: "/nowhere", policy: {}, guardrail_policy: {} }],
          "policy_layers",
          /must be one of the routes/
        ],
        [
          "policy_layers",
          [{ kind: "global", scope: null, policy: {}, guardrail_policy: { mandatory_guardrails: ["none"] } }],
          "policy_layers",
          /There is no guardrail none/
        ],
        ["upstream_passthrough", { ...document.upstream_passthrough, allowed_paths: ["v1"] }, undefined, /begin with/],
        ["studio_connection", { base_url: "studio" }, undefined, /base_url must be an http/],
        ["front_door", { ...document.front_door, identity_enabled: true }, undefined, /tenant_id must be set/]
      ] as const) {
        const refused = yield* apply({ ...document, model_prices: [], [section]: value }, base)
        assert.deepStrictEqual(
          refusalOf(refused),
          { status: 400, code: "invalid_configuration_document", param: blamed ?? section },
          refused.text
        )
        assert.match(String(at(refused.json, "error", "message")), message)
      }
      const format = "svc-configuration/1"
      for (const [rest, blamed, message] of [
        [{}, "service_links", /service_links team loses its last link to a service/],
        [{ service_links: [] }, "keys", /keys [0-9a-f-]{36} loses its last link to a service/]
      ] as const) {
        const refused = yield* apply({ format, services: [], ...rest }, base)
        assert.deepStrictEqual(
          refusalOf(refused),
          { status: 400, code: "invalid_configuration_document", param: blamed },
          refused.text
        )
        assert.match(String(at(refused.json, "error", "message")), message)
      }
      assert.deepStrictEqual(yield* exported, document)

      for (const [section, value, param] of [
        ["guardrails", [{ ...guardrail, timeout_ms: 99 }], "guardrails.0.timeout_ms"],
        ["guardrails", [{ ...guardrail, bearer_token: secret }], "guardrails.0.bearer_token"],
        ["services", [{ ...service, credential: secret }], "services.0.credential"],
        ["studio_connection", { base_url: null, token: secret }, "studio_connection.token"],
        ["front_door", { ...document.front_door, accepted_algorithms: ["none"] }, "front_door.accepted_algorithms.0"],
        ["upstream_passthrough", { enabled: true }, "upstream_passthrough.allowed_paths"]
      ] as const) {
        const refused = yield* call("POST", `${configuration}/plan`, { body: { ...document, [section]: value } })
        assert.deepStrictEqual(refusalOf(refused), { status: 422, code: "invalid_request", param }, refused.text)
        assert.notInclude(refused.text, "canary")
      }
    })
  )

  it.effect("a project that goes takes its policy layer along", () =>
    Effect.gen(function* () {
      yield* emptied
      const { sql } = yield* Database
      const scope_id = idOf(yield* ok("POST", `${admin}/projects`, { body: { name: "short-lived" } }))
      yield* ok("POST", `${admin}/policy-layers`, { body: { kind: "project", scope_id, policy: { deny: true } } })
      yield* applied({ ...noDocument, projects: [] })
      assert.deepStrictEqual(yield* sql`SELECT 1 FROM policy_layers`, [])
    })
  )

  it.effect(
    "whatever was there before, a document applied leaves nothing to do, and neither does its export",
    () =>
      Effect.gen(function* () {
        const { key, own } = yield* filled
        const run = Effect.runPromiseWith(yield* Effect.context<HttpClient.HttpClient>())
        const law = fc.asyncProperty(documents([key, own]), (document) =>
          run(
            Effect.gen(function* () {
              const done = yield* applied(document)
              const again = yield* plan(document)
              assert.deepStrictEqual(at(again, "changes"), [])
              assert.strictEqual(at(again, "base_hash"), at(done, "base_hash"))
              assert.deepStrictEqual(yield* plan(yield* exported), again)
            })
          )
        )
        yield* Effect.promise(() => fc.assert(law, { numRuns: 20 }))
        assert.strictEqual(at(yield* ok("GET", `${admin}/audit-events/verification`), "intact"), true)
      }),
    300_000
  )
})
