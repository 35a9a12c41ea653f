import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { Vault } from "../../../src/state/Vault.ts"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "../Listener.ts"

const services = `${admin}/services`
const nobody = "00000000-0000-4000-8000-000000000000"

const register = (body: object) => ok("POST", services, { body })

suite("Services", (it) => {
  it.effect("a name is enough: everything else has its default, and what is missing is told", () =>
    Effect.gen(function* () {
      const created = yield* register({ name: "plain" })
      assert.deepInclude(created, {
        name: "plain",
        project_id: null,
        studio_service_id: null,
        route_pattern: "/services/plain/*",
        upstream_base_url: null,
        health_check_path: null,
        health_check_method: "GET",
        enabled: true,
        allowed_methods: ["POST"],
        timeout_ms: 60_000,
        max_body_bytes: 2_097_152,
        cost_mode: "none",
        estimated_cost_usd: null,
        pricing_rules: [],
        openapi_source_path: null,
        openapi_endpoints: [],
        endpoint_pricing_rules: [],
        fallback_services: [],
        credential_configured: false,
        openapi_schema_hash: null,
        openapi_synced_at: null,
        source: "gateway",
        sync_status: "local",
        last_synced_at: null,
        disabled_at: null,
        missing_runtime_fields: ["upstream_base_url", "credential"]
      })
      assert.deepStrictEqual(yield* ok("GET", `${services}/plain`), created)
      const patterns = yield* Effect.forEach(["summary", "translation", "ocr", "embeddings"], (name) =>
        Effect.map(register({ name }), (json) => at(json, "route_pattern"))
      )
      assert.deepStrictEqual(patterns, ["/summary", "/translation", "/ocr", "/embeddings"])
    })
  )

  it.effect("every field is kept as it was given, rules in one form; lists are by name", () =>
    Effect.gen(function* () {
      const project_id = yield* Fixtures.project
      const given = {
        name: "full",
        project_id,
        studio_service_id: "studio-7",
        route_pattern: "/internal/full/*",
        upstream_base_url: "https://full.example:8443/",
        health_check_path: "/healthz",
        health_check_method: "HEAD",
        allowed_methods: ["GET", "POST", "DELETE"],
        credential: "svc-full",
        timeout_ms: 600_000,
        max_body_bytes: 104_857_600,
        cost_mode: "fixed",
        estimated_cost_usd: 0.25,
        openapi_source_path: "/openapi.json",
        fallback_services: ["plain"]
      }
      const created = yield* register({
        ...given,
        pricing_rules: [
          { name: "large", json_pointer: "/size", equals: "large", cost_mode: "fixed", estimated_cost_usd: 2 },
          { path: "/pages", equals: 3, cost_mode: "none" },
          { json_pointer: "/draft", equals: true, cost_mode: "passthrough" }
        ],
        openapi_endpoints: [{ method: "GET", path_template: "/jobs/{id}", operation_id: "job", summary: "One job" }],
        endpoint_pricing_rules: [{ method: "GET", path_template: "/jobs/{id}", cost_mode: "none" }]
      })
      const { credential: _, ...shown } = given
      assert.deepInclude(created, {
        ...shown,
        upstream_base_url: "https://full.example:8443",
        credential_configured: true,
        missing_runtime_fields: [],
        pricing_rules: [
          { name: "large", json_pointer: "/size", equals: "large", cost_mode: "fixed", estimated_cost_usd: 2 },
          { name: null, json_pointer: "/pages", equals: "3", cost_mode: "none", estimated_cost_usd: null },
          { name: null, json_pointer: "/draft", equals: "true", cost_mode: "passthrough", estimated_cost_usd: null }
        ],
        openapi_endpoints: [
          { method: "GET", path_template: "/jobs/{id}", operation_id: "job", summary: "One job", svc_default: false }
        ],
        endpoint_pricing_rules: [
          {
            method: "GET",
            path_template: "/jobs/{id}",
            operation_id: null,
            cost_mode: "none",
            estimated_cost_usd: null
          }
        ]
      })
      assert.deepStrictEqual(refusalOf(yield* call("DELETE", `${admin}/projects/${project_id}`)), {
        status: 409,
        code: "project_in_use",
        param: null
      })
      const names = yield* ok("GET", services)
      assert(Array.isArray(names))
      const listed = names.map((service) => String(at(service, "name")))
      assert.deepStrictEqual(listed, [...listed].sort())
    })
  )

  it.effect("null clears, or brings the default back; what is absent stays", () =>
    Effect.gen(function* () {
      const before = yield* ok("PATCH", `${services}/full`, { body: {} })
      const changed = yield* ok("PATCH", `${services}/full`, {
        body: {
          upstream_base_url: null,
          credential: null,
          route_pattern: null,
          allowed_methods: null,
          timeout_ms: null
        }
      })
      assert.deepInclude(changed, {
        route_pattern: "/services/full/*",
        upstream_base_url: null,
        allowed_methods: ["POST"],
        timeout_ms: 60_000,
        credential_configured: false,
        missing_runtime_fields: ["upstream_base_url", "credential"],
        max_body_bytes: 104_857_600,
        estimated_cost_usd: 0.25
      })
      assert.strictEqual(at(changed, "created_at"), at(before, "created_at"))
      const emptied = yield* ok("PATCH", `${services}/full`, {
        body: {
          project_id: null,
          studio_service_id: null,
          cost_mode: null,
          estimated_cost_usd: null,
          pricing_rules: null,
          openapi_endpoints: null,
          endpoint_pricing_rules: null,
          fallback_services: null,
          health_check_path: null,
          health_check_method: null,
          openapi_source_path: null,
          max_body_bytes: null,
          sync_status: "stale"
        }
      })
      const plain = yield* ok("GET", `${services}/plain`)
      const { created_at, name, route_pattern, sync_status, updated_at, ...rest } = Object(emptied)
      assert.deepInclude(plain, rest)
      assert.deepStrictEqual([name, sync_status], ["full", "stale"])
    })
  )

  it.effect("the credential is sealed for its row, and no answer or audit event shows it", () =>
    Effect.gen(function* () {
      const created = yield* call("POST", services, { body: { name: "secretive", credential: "svc-very-secret" } })
      assert.notInclude(created.text, "svc-very-secret")
      const { sql } = yield* Database
      const [row] = yield* sql<{ readonly sealed: string }>`
        SELECT sealed_credential AS sealed FROM service_registrations WHERE name = 'secretive'`
      assert(row !== undefined)
      assert.notInclude(row.sealed, "svc-very-secret")
      const vault = yield* Vault
      const opened = yield* vault.open(row.sealed, "service_registrations/secretive")
      assert.strictEqual(Redacted.value(opened), "svc-very-secret")
      const events = yield* call("GET", `${admin}/audit-events?target_type=service&target_id=secretive`)
      assert.include(events.text, "credential_configured")
      assert.notInclude(events.text, "svc-very-secret")
    })
  )

  it.effect("off and on again: since when it is off is shown, and switching twice changes nothing", () =>
    Effect.gen(function* () {
      const name = yield* Fixtures.service
      const off = yield* ok("POST", `${services}/${name}/disable`)
      assert.strictEqual(at(off, "enabled"), false)
      assert.isString(at(off, "disabled_at"))
      const still = yield* ok("POST", `${services}/${name}/disable`)
      assert.strictEqual(at(still, "disabled_at"), at(off, "disabled_at"))
      const on = yield* ok("POST", `${services}/${name}/enable`)
      assert.deepInclude(on, { enabled: true, disabled_at: null })
      const patched = yield* ok("PATCH", `${services}/${name}`, { body: { enabled: false } })
      assert.isString(at(patched, "disabled_at"))
    })
  )

  it.effect.each<[object, number, string, string]>([
    [{ name: "Upper" }, 400, "invalid_service_payload", "name"],
    [{ name: "-edge" }, 400, "invalid_service_payload", "name"],
    [{ name: "a".repeat(65) }, 400, "invalid_service_payload", "name"],
    [{ name: "plain" }, 409, "duplicate_service", "name"],
    [{ name: "x", project_id: nobody }, 404, "missing_project", "project_id"],
    [{ name: "x", upstream_base_url: "ftp://x" }, 400, "invalid_service_upstream", "upstream_base_url"],
    [{ name: "x", upstream_base_url: "http://x/v1" }, 400, "invalid_service_upstream", "upstream_base_url"],
    [{ name: "x", upstream_base_url: "http://u:p@x" }, 400, "invalid_service_upstream", "upstream_base_url"],
    [{ name: "x", credential: " " }, 400, "invalid_service_payload", "credential"],
    [{ name: "x", route_pattern: "x" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/a//b" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/a/../b" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/a/*/b" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/%61" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/*" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/v1/models" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/v1/*" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/admin-ui/x" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/providers/compat/x" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/providers/*" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/key/*" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/ui" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/User/info" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", route_pattern: "/services/*" }, 400, "invalid_service_payload", "route_pattern"],
    [{ name: "x", health_check_path: "health" }, 400, "invalid_service_payload", "health_check_path"],
    [{ name: "x", health_check_path: "//x" }, 400, "invalid_service_payload", "health_check_path"],
    [{ name: "x", openapi_source_path: "/a?b" }, 400, "invalid_service_payload", "openapi_source_path"],
    [{ name: "x", allowed_methods: [] }, 400, "invalid_service_payload", "allowed_methods"],
    [{ name: "x", allowed_methods: ["GET", "GET"] }, 400, "invalid_service_payload", "allowed_methods.1"],
    [{ name: "x", cost_mode: "fixed" }, 400, "invalid_service_payload", "estimated_cost_usd"],
    [{ name: "x", fallback_services: ["No"] }, 400, "invalid_service_payload", "fallback_services.0"],
    [
      { name: "x", pricing_rules: [{ json_pointer: "size", equals: "a", cost_mode: "none" }] },
      400,
      "invalid_service_payload",
      "pricing_rules.0.json_pointer"
    ],
    [
      { name: "x", pricing_rules: [{ equals: "a", cost_mode: "none" }] },
      400,
      "invalid_service_payload",
      "pricing_rules.0.json_pointer"
    ],
    [
      { name: "x", pricing_rules: [{ path: "/a", equals: "a", cost_mode: "fixed" }] },
      400,
      "invalid_service_payload",
      "pricing_rules.0.estimated_cost_usd"
    ],
    [
      { name: "x", endpoint_pricing_rules: [{ method: "GET", path_template: "/a/{b}c", cost_mode: "none" }] },
      400,
      "invalid_service_payload",
      "endpoint_pricing_rules.0.path_template"
    ],
    [
      {
        name: "x",
        endpoint_pricing_rules: [
          { method: "GET", path_template: "/a/{b}", cost_mode: "none" },
          { method: "GET", path_template: "/a/{c}", cost_mode: "none" }
        ]
      },
      400,
      "invalid_service_payload",
      "endpoint_pricing_rules.1"
    ],
    [{ name: "x", timeout_ms: 600_001 }, 422, "invalid_request", "timeout_ms"],
    [{ name: "x", max_body_bytes: 0 }, 422, "invalid_request", "max_body_bytes"],
    [{ name: "x", allowed_methods: ["TRACE"] }, 422, "invalid_request", "allowed_methods.0"],
    [{ name: "x", estimated_cost_usd: -1 }, 422, "invalid_request", "estimated_cost_usd"],
    [{ name: "x", nonsense: 1 }, 422, "invalid_request", "nonsense"]
  ])("refuses %j: %s %s, and blames %s", ([body, status, code, param]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(refusalOf(yield* call("POST", services, { body })), { status, code, param })
      const { name, ...patch } = { name: "x", ...body }
      if (name !== "x" || Object.keys(patch).length === 0) return
      assert.deepStrictEqual(refusalOf(yield* call("PATCH", `${services}/plain`, { body: patch })), {
        status,
        code,
        param
      })
    })
  )

  it.effect("a name that is taken is told, and so is a studio id; an unknown name is 404 with the envelope", () =>
    Effect.gen(function* () {
      yield* register({ name: "first", studio_service_id: "one" })
      const twice = yield* call("POST", services, { body: { name: "second", studio_service_id: "one" } })
      assert.deepStrictEqual(refusalOf(twice), { status: 409, code: "duplicate_service", param: "studio_service_id" })
      const missing = { status: 404, code: "missing_service", param: null }
      assert.deepStrictEqual(refusalOf(yield* call("GET", `${services}/nothing`)), missing)
      assert.deepStrictEqual(refusalOf(yield* call("PATCH", `${services}/nothing`, { body: {} })), missing)
      assert.deepStrictEqual(refusalOf(yield* call("DELETE", `${services}/nothing`)), missing)
      assert.deepStrictEqual(refusalOf(yield* call("POST", `${services}/nothing/enable`)), missing)
      assert.deepStrictEqual(refusalOf(yield* call("POST", `${services}/nothing/disable`)), missing)
      assert.strictEqual((yield* call("PATCH", `${services}/plain`, { body: { name: "other" } })).status, 422)
    })
  )

  it.effect("a project's links are replaced whole, all or nothing, and go with their service", () =>
    Effect.gen(function* () {
      const [a, b] = [yield* Fixtures.service, yield* Fixtures.service]
      const path = `${admin}/projects/${yield* Fixtures.project}`
      const linked = (json: Parameters<typeof at>[0]) => at(json, "service_names")
      assert.deepStrictEqual(linked(yield* ok("GET", path)), [])
      const set = (service_names: ReadonlyArray<string> | null) => ok("PATCH", path, { body: { service_names } })
      assert.deepStrictEqual(linked(yield* set([b, a, a])), [a, b].sort())
      assert.deepStrictEqual(linked(yield* set([a])), [a])
      assert.deepStrictEqual(linked(yield* ok("PATCH", path, { body: { name: `renamed ${a}` } })), [a])
      assert.deepStrictEqual(
        refusalOf(yield* call("PATCH", path, { body: { name: "lost", service_names: [b, "nothing"] } })),
        { status: 404, code: "missing_service", param: "service_names" }
      )
      assert.deepInclude(yield* ok("GET", path), { name: `renamed ${a}`, service_names: [a] })
      const [listed] = Object(yield* ok("GET", `${admin}/projects`)).filter(
        (project: object) => at(Object(project), "name") === `renamed ${a}`
      )
      assert.deepStrictEqual(linked(listed), [a])
      yield* set([a, b])
      yield* ok("DELETE", `${services}/${a}`)
      assert.deepStrictEqual(linked(yield* ok("GET", path)), [b])
      assert.deepStrictEqual(linked(yield* set(null)), [])
    })
  )

  it.effect("an individual key has links of its own; a project's key has none, and leaves them when it joins", () =>
    Effect.gen(function* () {
      const [a, b] = [yield* Fixtures.service, yield* Fixtures.service]
      const created = yield* ok("POST", `${admin}/keys`, { body: { owner_type: "individual", service_names: [b, a] } })
      const id = idOf(created, "key")
      assert.deepStrictEqual(at(created, "key", "service_names"), [a, b].sort())
      const path = `${admin}/keys/${id}`
      assert.deepStrictEqual(at(yield* ok("GET", path), "service_names"), [a, b].sort())
      assert.deepStrictEqual(at(yield* ok("PATCH", path, { body: { service_names: [b] } }), "service_names"), [b])
      assert.deepStrictEqual(at(yield* ok("PATCH", path, { body: { disabled: true } }), "service_names"), [b])
      assert.deepStrictEqual(refusalOf(yield* call("PATCH", path, { body: { service_names: ["nothing"] } })), {
        status: 404,
        code: "missing_service",
        param: "service_names"
      })
      const project_id = yield* Fixtures.project
      const joins = { owner_type: "project", project_id }
      assert.deepStrictEqual(refusalOf(yield* call("PATCH", path, { body: { ...joins, service_names: [a] } })), {
        status: 400,
        code: "invalid_project_payload",
        param: "service_names"
      })
      assert.deepStrictEqual(at(yield* ok("GET", path), "service_names"), [b])
      assert.deepInclude(yield* ok("PATCH", path, { body: joins }), { project_id, service_names: [] })
      assert.deepStrictEqual(
        refusalOf(yield* call("POST", `${admin}/keys`, { body: { project_id, service_names: [a] } })),
        { status: 400, code: "invalid_project_payload", param: "service_names" }
      )
    })
  )

  it.effect("a service stays while it is all that somebody is linked to, who could call every other without it", () =>
    Effect.gen(function* () {
      const [a, b] = [yield* Fixtures.service, yield* Fixtures.service]
      const project = `${admin}/projects/${yield* Fixtures.project}`
      const created = yield* ok("POST", `${admin}/keys`, { body: { owner_type: "individual", service_names: [a, b] } })
      const key = `${admin}/keys/${idOf(created, "key")}`
      yield* ok("PATCH", project, { body: { service_names: [a] } })
      const refused = yield* call("DELETE", `${services}/${a}`)
      assert.deepStrictEqual(refusalOf(refused), { status: 409, code: "service_in_use", param: null })
      assert.match(refused.text, /the only link of the project project \d+/)
      yield* ok("PATCH", project, { body: { service_names: [a, b] } })
      yield* ok("DELETE", `${services}/${a}`)
      assert.deepStrictEqual(at(yield* ok("GET", key), "service_names"), [b])
      yield* ok("PATCH", project, { body: { service_names: null } })
      const shown = at(created, "key", "key_prefix")
      assert.include((yield* call("DELETE", `${services}/${b}`)).text, `the only link of the key ${shown}`)
      yield* ok("POST", `${key}/revoke`)
      yield* ok("DELETE", `${services}/${b}`)
    })
  )

  it.effect("of two services that go at once, one is the last", () =>
    Effect.gen(function* () {
      const [a, b] = [yield* Fixtures.service, yield* Fixtures.service]
      yield* ok("POST", `${admin}/keys`, { body: { owner_type: "individual", service_names: [a, b] } })
      const both = [a, b].map((name) => call("DELETE", `${services}/${name}`))
      const statuses = (yield* Effect.all(both, { concurrency: 2 })).map(({ status }) => status)
      assert.deepStrictEqual(statuses.sort(), [204, 409])
    })
  )

  it.effect("whoever is linked to a service hears that it goes", () =>
    Effect.gen(function* () {
      const [name, other] = [yield* Fixtures.service, yield* Fixtures.service]
      const project = yield* Fixtures.project
      yield* ok("PATCH", `${admin}/projects/${project}`, { body: { service_names: [name, other] } })
      const { sql } = yield* Database
      const epoch = Effect.map(
        sql<{ readonly epoch: string }>`SELECT epoch::text AS epoch FROM control_epoch`,
        ([row]) => Number(row?.epoch)
      )
      const before = yield* epoch
      yield* ok("DELETE", `${services}/${name}`)
      assert.strictEqual((yield* epoch) - before, 2)
    })
  )
})
