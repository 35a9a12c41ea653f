import { assert } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { Database } from "../../../src/services/Database.ts"
import * as Changes from "../../../src/state/Changes.ts"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"

const services = `${admin}/services`
const nobody = "00000000-0000-4000-8000-000000000000"

const suggestion = {
  studio_service_id: "st-1",
  name: "ocr-plus",
  project_id: null,
  route_pattern: "/services/ocr-plus/*",
  upstream_base_url: "http://ocr.internal:9000/",
  health_check_path: "/health",
  health_check_method: "HEAD",
  allowed_methods: ["GET", "POST"],
  category: "vision",
  default_pricing: {
    cost_mode: "fixed",
    estimated_cost_usd: 0.02,
    pricing_rules: [{ path: "/pages", equals: 10, cost_mode: "fixed", estimated_cost_usd: 0.1 }]
  }
}

const rule = { name: null, json_pointer: "/pages", equals: "10", cost_mode: "fixed", estimated_cost_usd: 0.1 }

const take = (body: object) => ok("POST", `${services}/import`, { body })
const statusOf = (name: string) => ok("GET", `${services}/${name}/sync-status`)
const preview = (entries: ReadonlyArray<object>) =>
  Effect.map(ok("POST", `${services}/import/preview`, { body: { services: entries } }), (json) => at(json, "diff"))
const activate = (entries: ReadonlyArray<object>, source?: string) =>
  ok("POST", `${services}/import/activate`, { body: { services: entries, ...(source && { source }) } })
const rollback = (version: unknown) => ok("POST", `${services}/import/rollback/${version}`)

/** The registry as it is, without what time does to it. */
const registry = Effect.map(ok("GET", services), (json) =>
  Array.isArray(json)
    ? json.map((service) => {
        const { created_at: _c, disabled_at: _d, last_synced_at: _l, updated_at: _u, ...rest } = Object(service)
        return rest
      })
    : []
)

const emptied = Effect.flatMap(Database, ({ sql }) => sql`DELETE FROM service_registrations`)
const unchanged = { added: [], changed: [], removed: [], changed_fields: {}, invalid: [] }

suite("Service import", (it) => {
  it.effect("a new service of the studio is disabled, and incomplete until it has what it needs", () =>
    Effect.gen(function* () {
      yield* emptied
      const made = yield* take(suggestion)
      assert.deepInclude(made, {
        name: "ocr-plus",
        studio_service_id: "st-1",
        source: "studio",
        enabled: false,
        sync_status: "incomplete",
        upstream_base_url: "http://ocr.internal:9000",
        health_check_path: "/health",
        health_check_method: "HEAD",
        allowed_methods: ["GET", "POST"],
        cost_mode: "fixed",
        estimated_cost_usd: 0.02,
        pricing_rules: [rule],
        missing_runtime_fields: ["credential"]
      })
      assert.isString(at(made, "last_synced_at"))
      assert.deepInclude(yield* statusOf("ocr-plus"), {
        service_name: "ocr-plus",
        source: "studio",
        studio_service_id: "st-1",
        sync_status: "incomplete",
        missing_runtime_fields: ["credential"]
      })
      yield* ok("PATCH", `${services}/ocr-plus`, { body: { credential: "sk-1" } })
      assert.deepInclude(yield* statusOf("ocr-plus"), { sync_status: "synced", missing_runtime_fields: [] })
      const missing = yield* call("GET", `${services}/nothing/sync-status`)
      assert.deepStrictEqual(refusalOf(missing), { status: 404, code: "missing_service", param: null })
    })
  )

  it.effect("again is the same as once; what an operator decided stays, name and pricing rules are the studio's", () =>
    Effect.gen(function* () {
      yield* emptied
      yield* take(suggestion)
      const once = yield* registry
      yield* ok("POST", `${services}/sync`, { body: suggestion })
      assert.deepStrictEqual(yield* registry, once)

      const mine = {
        route_pattern: "/internal/ocr/*",
        upstream_base_url: "http://mine:1",
        allowed_methods: ["PUT"],
        timeout_ms: 5_000,
        credential: "sk-1",
        enabled: true,
        cost_mode: "none",
        estimated_cost_usd: null
      }
      yield* ok("PATCH", `${services}/ocr-plus`, { body: mine })
      const { credential: _, ...kept } = mine
      const again = yield* take({ ...suggestion, default_pricing: { pricing_rules: [] } })
      assert.deepInclude(again, { ...kept, credential_configured: true, pricing_rules: [], sync_status: "synced" })
      assert.deepInclude(yield* take({ studio_service_id: "st-1", name: "ocr-plus" }), { ...kept, pricing_rules: [] })
      assert.lengthOf(yield* registry, 1)
    })
  )

  it.effect("a new name is followed by links, fallbacks and the credential", () =>
    Effect.gen(function* () {
      yield* emptied
      const { sql } = yield* Database
      yield* take(suggestion)
      yield* ok("PATCH", `${services}/ocr-plus`, { body: { credential: "sk-1" } })
      const other = yield* ok("POST", services, { body: { name: "other", fallback_services: ["ocr-plus"] } })
      const project = yield* Fixtures.project
      yield* ok("PATCH", `${admin}/projects/${project}`, { body: { service_names: ["ocr-plus"] } })
      const before = yield* sql`SELECT sealed_credential FROM service_registrations WHERE name = 'ocr-plus'`

      assert.deepInclude(yield* take({ ...suggestion, name: "ocr-next" }), {
        name: "ocr-next",
        credential_configured: true,
        route_pattern: "/services/ocr-plus/*"
      })
      assert.strictEqual((yield* call("GET", `${services}/ocr-plus`)).status, 404)
      assert.deepStrictEqual(at(yield* ok("GET", `${admin}/projects/${project}`), "service_names"), ["ocr-next"])
      const following = yield* ok("GET", `${services}/other`)
      assert.deepStrictEqual(at(following, "fallback_services"), ["ocr-next"])
      assert.notStrictEqual(at(following, "updated_at"), at(other, "updated_at"))
      const after = yield* sql`SELECT sealed_credential FROM service_registrations WHERE name = 'ocr-next'`
      assert.notDeepEqual(after, before)
    })
  )

  it.effect("a new name reloads the projects and keys that the service is linked to, also without a credential", () =>
    Effect.gen(function* () {
      yield* emptied
      yield* take(suggestion)
      const project = yield* Fixtures.project
      yield* ok("PATCH", `${admin}/projects/${project}`, { body: { service_names: ["ocr-plus"] } })
      const body = { owner_type: "individual", service_names: ["ocr-plus"] }
      const key = String(at(at(yield* ok("POST", `${admin}/keys`, { body }), "key"), "id"))
      const { changes: notices, notify } = yield* Database
      const received = yield* (yield* notices(Changes.channel)).pipe(
        Stream.takeUntil((text) => text === "end"),
        Stream.runCollect,
        Effect.forkChild
      )

      yield* take({ ...suggestion, name: "ocr-next" })

      yield* notify(Changes.channel, "end")
      const texts = (yield* Fiber.join(received)).filter((text) => text !== "end")
      const changes = yield* Effect.forEach(texts, (text) =>
        Effect.map(Changes.decodeNotice(text), ({ change }) => change)
      )
      assert.deepStrictEqual(
        changes.filter(({ _tag }) => _tag !== "Configuration"),
        [
          { _tag: "Project", id: project },
          { _tag: "Key", id: key }
        ]
      )
    })
  )

  it.effect("a name of somebody else, a project that is not there and a broken rule are refused by field", () =>
    Effect.gen(function* () {
      yield* emptied
      yield* ok("POST", services, { body: { name: "local" } })
      yield* take(suggestion)
      const before = yield* registry
      const cases = [
        [{ name: "local" }, 409, "duplicate_service", "name"],
        [{ name: "ocr-plus" }, 409, "duplicate_service", "name"],
        [{ name: "Not A Label" }, 400, "invalid_service_payload", "name"],
        [{ project_id: nobody }, 404, "missing_project", "project_id"],
        [{ route_pattern: "/v1/mine" }, 400, "invalid_service_payload", "route_pattern"],
        [{ route_pattern: "/prompts/*" }, 400, "invalid_service_payload", "route_pattern"],
        [{ upstream_base_url: "http://host/path" }, 400, "invalid_service_upstream", "upstream_base_url"],
        [{ upstream_base_url: "http://u:p@host" }, 400, "invalid_service_upstream", "upstream_base_url"],
        [{ default_pricing: { cost_mode: "fixed" } }, 400, "invalid_service_payload", "estimated_cost_usd"],
        [
          { default_pricing: { pricing_rules: [{ path: "no", equals: 1, cost_mode: "none" }] } },
          400,
          "invalid_service_payload",
          "default_pricing.pricing_rules.0.json_pointer"
        ],
        [{ default_pricing: { currency: "EUR" } }, 422, "invalid_request", "default_pricing.currency"],
        [{ credential: "sk-1" }, 422, "invalid_request", "credential"]
      ] as const
      for (const [change, status, code, param] of cases) {
        const body = { studio_service_id: "st-2", name: "fresh", ...change }
        const refusal = refusalOf(yield* call("POST", `${services}/import`, { body }))
        assert.deepStrictEqual(refusal, { status, code, param }, JSON.stringify(change))
      }
      assert.deepStrictEqual(yield* registry, before)
    })
  )

  it.effect("a preview says what would be added, changed and removed, and what is wrong; it writes nothing", () =>
    Effect.gen(function* () {
      yield* emptied
      yield* ok("POST", services, { body: { name: "kept" } })
      yield* ok("POST", services, { body: { name: "changing", timeout_ms: 1_000 } })
      yield* ok("POST", services, { body: { name: "leaving" } })
      const before = yield* ok("GET", services)
      const diff = yield* preview([
        { name: "kept" },
        { name: "changing", timeout_ms: 2_000, allowed_methods: ["POST"] },
        suggestion,
        { name: "WRONG" },
        { name: "astray", upstream_base_url: "nowhere" },
        { name: "astray" }
      ])
      assert.deepInclude(diff, {
        changed: ["changing"],
        removed: ["leaving"],
        changed_fields: { changing: ["timeout_ms"] }
      })
      const invalid = at(diff, "invalid")
      assert.deepStrictEqual(
        Array.isArray(invalid) ? invalid.map((one) => [at(one, "service_name"), at(one, "field")]) : [],
        [
          ["WRONG", "name"],
          ["astray", "upstream_base_url"],
          ["astray", "name"]
        ]
      )
      assert.deepStrictEqual(yield* ok("GET", services), before)
      assert.deepStrictEqual(yield* ok("GET", `${services}/import/versions`), [])
    })
  )

  it.effect("an activation does what its preview said, and then there is nothing left to do", () =>
    Effect.gen(function* () {
      yield* emptied
      yield* ok("POST", services, { body: { name: "leaving", credential: "sk-1" } })
      const draft = [{ name: "first", upstream_base_url: "http://first:1", enabled: true }, suggestion]
      const expected = yield* preview(draft)
      assert.deepInclude(expected, { added: ["first", "ocr-plus"], changed: [], removed: ["leaving"], invalid: [] })
      const activation = yield* activate(draft)
      assert.deepInclude(at(activation, "snapshot"), { source: "admin-api", rolled_back_from_version: null })
      assert.deepStrictEqual(at(activation, "snapshot", "diff"), expected)
      assert.deepStrictEqual(at(activation, "services"), yield* ok("GET", services))
      assert.deepStrictEqual(yield* preview(draft), unchanged)
      assert.deepInclude(yield* ok("GET", `${services}/leaving`), {
        enabled: false,
        sync_status: "stale",
        credential_configured: true
      })
      const refused = yield* call("POST", `${services}/import/activate`, {
        body: { services: [{ name: "second" }, { name: "WRONG" }] }
      })
      assert.deepStrictEqual(refusalOf(refused), { status: 400, code: "invalid_service_payload", param: "name" })
      assert.strictEqual((yield* call("GET", `${services}/second`)).status, 404)
    })
  )

  it.effect("versions are newest first; a rollback brings the registry back, as a version of its own", () =>
    Effect.gen(function* () {
      yield* emptied
      const project = yield* Fixtures.project
      const first = yield* activate([{ name: "a", timeout_ms: 1, project_id: project, enabled: true }], "one")
      yield* ok("PATCH", `${services}/a`, { body: { credential: "sk-1" } })
      const then = yield* registry
      const second = yield* activate([{ name: "b" }, { name: "a", timeout_ms: 2, project_id: null }], "two")
      const third = yield* activate([{ name: "c" }])
      const [v1, v2, v3] = [first, second, third].map((one) => Number(at(one, "snapshot", "version")))
      const list = yield* ok("GET", `${services}/import/versions?limit=3`)
      assert.deepStrictEqual(
        [0, 1, 2].map((i) => at(list, i, "version")),
        [v3, v2, v1]
      )
      const older = yield* ok("GET", `${services}/import/versions?limit=1&before=${v3}`)
      assert.deepStrictEqual([at(older, 0, "version"), at(older, 1)], [v2, undefined])

      const back = yield* rollback(v1)
      assert.deepInclude(at(back, "snapshot"), { source: "one", rolled_back_from_version: v1 })
      assert.isAbove(Number(at(back, "snapshot", "version")), Number(v3))
      const now = yield* registry
      assert.deepStrictEqual(
        now.filter(({ name }) => name === "a"),
        then
      )
      assert.deepStrictEqual(
        now.filter(({ name }) => name !== "a").map(({ enabled, sync_status }) => [enabled, sync_status]),
        [
          [false, "stale"],
          [false, "stale"]
        ]
      )
      yield* activate([{ name: "a", project_id: null }])
      yield* ok("DELETE", `${admin}/projects/${project}`)
      assert.isNull(at(yield* rollback(v1), "services", 0, "project_id"))

      for (const [version, code] of [
        ["999999", "missing_service"],
        ["nonsense", "not_found"]
      ] as const) {
        const answer = yield* call("POST", `${services}/import/rollback/${version}`)
        assert.deepStrictEqual(refusalOf(answer), { status: 404, code, param: null })
      }
    })
  )

  it.effect("imports of one service at once make one service", () =>
    Effect.gen(function* () {
      yield* emptied
      const answers = yield* Effect.forEach(
        Array.from({ length: 8 }),
        () => call("POST", `${services}/import`, { body: suggestion }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [200])
      assert.lengthOf(yield* registry, 1)
    })
  )
})
