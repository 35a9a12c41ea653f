import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { Vault } from "../../../src/state/Vault.ts"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "../Listener.ts"

const nobody = "00000000-0000-4000-8000-000000000000"

suite("Configuration", (it) => {
  it.effect("projects: trimmed names, one of each, sorted", () =>
    Effect.gen(function* () {
      const projects = `${admin}/projects`
      const made = yield* ok("POST", projects, { body: { name: "  b team  " } })
      assert.strictEqual(at(made, "name"), "b team")
      yield* ok("POST", projects, { body: { name: "a team" } })
      const duplicate = { status: 409, code: "duplicate_project", param: "name" }
      assert.deepStrictEqual(refusalOf(yield* call("POST", projects, { body: { name: "a team " } })), duplicate)
      const path = `${projects}/${idOf(made)}`
      assert.deepStrictEqual(refusalOf(yield* call("PATCH", path, { body: { name: "a team" } })), duplicate)
      for (const name of ["", "   ", "x".repeat(121), "tab\there"]) {
        const refusal = { status: 400, code: "invalid_project_payload", param: "name" }
        assert.deepStrictEqual(refusalOf(yield* call("POST", projects, { body: { name } })), refusal)
        assert.deepStrictEqual(refusalOf(yield* call("PATCH", path, { body: { name } })), refusal)
      }
      assert.deepStrictEqual(yield* ok("GET", path), { ...Object(made), key_count: 0 })
      assert.strictEqual(at(yield* ok("PATCH", path, { body: { name: "🚀".repeat(120) } }), "name"), "🚀".repeat(120))
      assert.strictEqual(at(yield* ok("GET", projects), 0, "name"), "a team")
      const missing = { status: 404, code: "missing_project", param: null }
      assert.deepStrictEqual(refusalOf(yield* call("GET", `${projects}/${nobody}`)), missing)
      assert.deepStrictEqual(refusalOf(yield* call("DELETE", `${projects}/${nobody}`)), missing)
    })
  )

  it.effect("a project that keys or usage refer to stays; otherwise it goes with its mapping", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const inUse = { status: 409, code: "project_in_use", param: null }
      const withKey = yield* Fixtures.project
      yield* ok("POST", `${admin}/keys`, { body: { project_id: withKey } })
      assert.deepStrictEqual(refusalOf(yield* call("DELETE", `${admin}/projects/${withKey}`)), inUse)

      const withUsage = yield* Fixtures.project
      yield* sql`
        INSERT INTO usage_events (id, created_at, request_id, key_id, project_id, route, provider, status, status_code,
          latency_ms, usage_source, cost_source, streamed)
        VALUES (gen_random_uuid(), now(), 'r', ${nobody}, ${withUsage}, '/v1/responses', 'upstream', 'success', 200, 1,
          'status_only', 'none', false)`
      assert.deepStrictEqual(refusalOf(yield* call("DELETE", `${admin}/projects/${withUsage}`)), inUse)

      const free = yield* Fixtures.project
      const mapping = { scope: "project", target_id: free, credential: "sk-1" }
      yield* ok("POST", `${admin}/providers/upstream-credentials`, { body: mapping })
      const gone = yield* call("DELETE", `${admin}/projects/${free}`)
      assert.deepStrictEqual([gone.status, gone.text], [204, ""])
      assert.deepStrictEqual(yield* sql`SELECT 1 FROM upstream_credential_mappings WHERE project_id = ${free}`, [])
    })
  )

  it.effect("all routes by one call, or none: an event each", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const events = Effect.map(
        sql`SELECT 1 FROM audit_events WHERE action = 'policies:route_config_update'`,
        ({ length }) => length
      )
      const before = yield* events
      const body = { timeout_ms: 600_000, max_request_body_bytes: 33_554_432, max_response_body_bytes: 67_108_864 }
      const changed = yield* ok("PATCH", `${admin}/routes/config`, { body })
      assert.strictEqual(yield* events, before + 10)
      const routes =
        yield* sql`SELECT DISTINCT timeout_ms, max_request_body_bytes, max_response_body_bytes, limits_streams
        FROM canonical_routes`
      assert.deepStrictEqual(routes, [{ ...body, limits_streams: true }])
      assert.isTrue(Array.isArray(changed) && changed.length === 10)
      // one of the ten cannot be so
      const refused = yield* call("PATCH", `${admin}/routes/config`, { body: { timeout_ms: 1, ownership: "key" } })
      assert.deepStrictEqual(refusalOf(refused), {
        status: 400,
        code: "invalid_provider_config_payload",
        param: "ownership"
      })
      assert.deepStrictEqual(yield* sql`SELECT DISTINCT timeout_ms FROM canonical_routes`, [{ timeout_ms: 600_000 }])
      assert.strictEqual(yield* events, before + 10)
      yield* ok("PATCH", `${admin}/routes/config`, {
        body: {
          timeout_ms: 120_000,
          max_request_body_bytes: 1_048_576,
          max_response_body_bytes: 1_048_576,
          limits_streams: false
        }
      })
    })
  )

  it.effect("routes: three of family A, seven of family B with models, as the specification seeds them", () =>
    Effect.gen(function* () {
      const idsOf = (family: "a" | "b") =>
        Effect.map(ok("GET", `${admin}/family-${family}-routes`), (rows) =>
          Array.isArray(rows) ? rows.map((row) => at(row, "route_id")) : []
        )
      assert.deepStrictEqual(yield* idsOf("a"), ["chat-completions", "embeddings", "responses"])
      assert.deepStrictEqual(yield* idsOf("b"), [
        "message-batch",
        "message-batch-cancel",
        "message-batch-results",
        "message-batches",
        "messages",
        "messages-count-tokens",
        "models"
      ])
      const path = `${admin}/family-a-routes/embeddings`
      const { updated_at: _, ...seeded } = Object(at(yield* ok("GET", `${admin}/family-a-routes`), 1))
      assert.deepStrictEqual(seeded, {
        route_id: "embeddings",
        route: "/v1/embeddings",
        enabled: true,
        mode: "managed_by_gateway",
        timeout_ms: 120_000,
        max_request_body_bytes: 1_048_576,
        max_response_body_bytes: 1_048_576,
        limits_streams: false,
        ownership: "project"
      })
      const direct = "direct_upstream_passthrough"
      assert.strictEqual(at(yield* ok("POST", `${path}/disable`), "enabled"), false)
      assert.strictEqual(at(yield* ok("PATCH", `${path}/mode`, { body: { mode: direct } }), "mode"), direct)
      const config = yield* ok("PATCH", `${path}/config`, { body: { timeout_ms: 600_000, max_response_body_bytes: 1 } })
      assert.deepInclude(config, { enabled: false, mode: direct, timeout_ms: 600_000, max_response_body_bytes: 1 })
      assert.strictEqual(at(config, "limits_streams"), true)
      const unlimited = yield* ok("PATCH", `${path}/config`, { body: { limits_streams: false } })
      assert.deepInclude(unlimited, { max_response_body_bytes: 1, limits_streams: false })
      for (const [param, value] of [
        ["timeout_ms", 0],
        ["timeout_ms", 600_001],
        ["ownership", "nobody"],
        ["max_request_body_bytes", 104_857_601],
        ["max_response_body_bytes", -1]
      ] as const) {
        const answer = yield* call("PATCH", `${path}/config`, { body: { mode: direct, [param]: value } })
        assert.deepStrictEqual(refusalOf(answer), { status: 400, code: "invalid_provider_config_payload", param })
      }
      const alone = yield* ok("PATCH", `${path}/config`, { body: { mode: "managed_by_gateway" } })
      assert.deepInclude(alone, { mode: "managed_by_gateway", timeout_ms: 600_000 })
      assert.strictEqual(at(yield* ok("POST", `${path}/enable`), "enabled"), true)
      // every route whose bodies or paths name objects
      for (const route of ["family-a-routes/embeddings", "family-b-routes/messages", "family-b-routes/message-batch"]) {
        for (const ownership of ["shared", "project"]) {
          const config = yield* ok("PATCH", `${admin}/${route}/config`, { body: { ownership } })
          assert.strictEqual(at(config, "ownership"), ownership)
        }
      }
      const models = yield* call("PATCH", `${admin}/family-b-routes/models/config`, { body: { ownership: "shared" } })
      assert.deepInclude(refusalOf(models), { status: 400, param: "ownership" })
    })
  )

  it.effect("providers: the credential goes in sealed, is kept, cleared by null, and never shown", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const vault = yield* Vault
      const providers = `${admin}/providers`
      const made = yield* ok("POST", providers, {
        body: { provider: "upstream", name: "main", base_url: "https://Upstream.example:443/", credential: "sk-sealed" }
      })
      const id = idOf(made)
      const sealed = Effect.map(
        sql<{
          readonly sealed_credential: string | null
        }>`SELECT sealed_credential FROM provider_configs WHERE id = ${id}`,
        ([row]) => row?.sealed_credential ?? null
      )
      assert.deepInclude(made, {
        base_url: "https://upstream.example",
        enabled: true,
        credential_configured: true,
        credential_header_mode: "authorization_bearer",
        credential_header_name: null,
        credential_header_value_format: "raw"
      })
      const opened = yield* vault.open((yield* sealed) ?? "", `provider_configs/${id}`)
      assert.strictEqual(Redacted.value(opened), "sk-sealed")

      const path = `${providers}/${id}`
      const custom = { credential_header_mode: "custom_header", credential_header_name: "x-upstream-key" }
      assert.deepInclude(yield* ok("PATCH", path, { body: { ...custom, credential_header_value_format: "bearer" } }), {
        ...custom,
        credential_header_value_format: "bearer",
        credential_configured: true
      })
      const nameless = yield* call("PATCH", path, { body: { credential_header_name: null } })
      assert.strictEqual(at(nameless.json, "error", "param"), "credential_header_name")
      assert.strictEqual(at(yield* ok("PATCH", path, { body: { credential: null } }), "credential_configured"), false)
      assert.isNull(yield* sealed)
      assert.strictEqual((yield* call("DELETE", path)).status, 204)
      assert.deepStrictEqual(refusalOf(yield* call("GET", path)), {
        status: 404,
        code: "missing_provider_config",
        param: null
      })
    })
  )

  it.effect("providers: one enabled upstream, one name for each provider", () =>
    Effect.gen(function* () {
      const providers = `${admin}/providers`
      const row = (name: string, more: object = {}) => ({
        body: { provider: "upstream", name, base_url: "http://127.0.0.1:9000", ...more }
      })
      const first = yield* ok("POST", providers, row("one"))
      const busy = { status: 409, code: "duplicate_provider_config", param: "enabled" }
      assert.deepStrictEqual(refusalOf(yield* call("POST", providers, row("two"))), busy)
      const second = yield* ok("POST", providers, row("two", { enabled: false }))
      assert.deepStrictEqual(refusalOf(yield* call("POST", `${providers}/${idOf(second)}/enable`)), busy)
      assert.deepStrictEqual(refusalOf(yield* call("POST", providers, row("two", { enabled: false }))), {
        ...busy,
        param: "name"
      })
      yield* ok("POST", `${providers}/${idOf(first)}/disable`)
      assert.strictEqual(at(yield* ok("POST", `${providers}/${idOf(second)}/enable`), "enabled"), true)
      yield* ok("DELETE", `${providers}/${idOf(second)}`)
    })
  )

  it.effect("providers: a URL, a header or a credential that cannot work is refused by name", () =>
    Effect.gen(function* () {
      const path = `${admin}/providers/${yield* Fixtures.provider}`
      const refused = (body: object, param: string) =>
        Effect.map(call("PATCH", path, { body }), (answer) => {
          const expected = { status: 400, code: "invalid_provider_config_payload", param }
          assert.deepStrictEqual(refusalOf(answer), expected, JSON.stringify(body))
          assert.notInclude(answer.text, "cAnArY")
        })
      for (const base_url of [
        "",
        "host",
        "ftp://host",
        "https://",
        "https://user:cAnArY@host",
        "https://host/v1/chat/completions",
        "https://host/a/../v1",
        "https://host?x",
        "https://host/#"
      ]) {
        yield* refused({ base_url }, "base_url")
      }
      for (const name of ["authorization", "X-API-Key", "x-svc-key", "X-Svc-Anything", "host", "two words", "", "ü"]) {
        yield* refused({ credential_header_name: name }, "credential_header_name")
      }
      for (const credential of ["", " ", "cAnArY\n", "cAnArY two", "cAnArYé", "c".repeat(4097)]) {
        yield* refused({ credential }, "credential")
      }
      yield* refused({ name: " " }, "name")
    })
  )

  it.effect("mappings: one for each target; an absent credential keeps, a target must exist", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const vault = yield* Vault
      const mappings = `${admin}/providers/upstream-credentials`
      const target_id = yield* Fixtures.key
      const upsert = (body: object) => ok("POST", mappings, { body: { scope: "key", target_id, ...body } })
      const bare = yield* upsert({})
      assert.deepInclude(bare, { scope: "key", target_id, enabled: true, credential_configured: false })
      assert.match(String(at(bare, "target_label")), /^rk_live_[0-9a-f]{8}$/)
      const id = idOf(bare)
      assert.deepInclude(yield* upsert({ credential: "sk-mapped" }), { id, credential_configured: true })
      assert.deepInclude(yield* upsert({ enabled: false, credential: null }), {
        id,
        enabled: false,
        credential_configured: true
      })
      assert.deepInclude(yield* upsert({}), { id, enabled: false })
      const [row] = yield* sql<{ readonly sealed_credential: string }>`
        SELECT sealed_credential FROM upstream_credential_mappings WHERE id = ${id}`
      const opened = yield* vault.open(row?.sealed_credential ?? "", `upstream_credential_mappings/${id}`)
      assert.strictEqual(Redacted.value(opened), "sk-mapped")

      for (const [body, param] of [
        [{ scope: "project", target_id }, "target_id"],
        [{ scope: "key", target_id: nobody }, "target_id"],
        [{ scope: "key", target_id, credential: " " }, "credential"]
      ] as const) {
        const expected = { status: 400, code: "invalid_provider_config_payload", param }
        assert.deepStrictEqual(refusalOf(yield* call("POST", mappings, { body })), expected)
      }
      assert.strictEqual(at(yield* ok("POST", `${mappings}/${id}/enable`), "enabled"), true)
      const listed = yield* ok("GET", mappings)
      assert.isTrue(Array.isArray(listed) && listed.some((mapping) => at(mapping, "id") === id))
      assert.strictEqual((yield* call("DELETE", `${mappings}/${id}`)).status, 204)
      assert.strictEqual(refusalOf(yield* call("DELETE", `${mappings}/${id}`)).code, "missing_provider_config")
    })
  )

  it.effect("mappings: upserts for one target at once make one mapping", () =>
    Effect.gen(function* () {
      const target_id = yield* Fixtures.project
      const body = { scope: "project", target_id, credential: "sk-race" }
      const ids = yield* Effect.forEach(
        Array.from({ length: 6 }),
        () => Effect.map(ok("POST", `${admin}/providers/upstream-credentials`, { body }), (json) => idOf(json)),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(new Set(ids).size, 1)
    })
  )

  it.effect("prices: dollars outside, exact nano-dollars inside, and names with slashes", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const path = `${admin}/model-prices/${encodeURIComponent("vendor/model:1 ☃")}`
      const body = { input_usd_per_million: 0.15, output_usd_per_million: 0.000000001, cache_write_usd_per_million: 0 }
      const put = yield* ok("PUT", path, { body })
      assert.deepInclude(put, { ...body, model: "vendor/model:1 ☃", cached_input_usd_per_million: null })
      const [row] = yield* sql`SELECT * FROM model_prices WHERE model = 'vendor/model:1 ☃'`
      assert.deepInclude(row, {
        input_nanos_per_million: 150_000_000n,
        output_nanos_per_million: 1n,
        cached_input_nanos_per_million: null,
        cache_write_nanos_per_million: 0n
      })
      const replaced = yield* ok("PUT", path, { body: { input_usd_per_million: 1, output_usd_per_million: 2 } })
      assert.strictEqual(at(replaced, "cache_write_usd_per_million"), null)
      assert.deepStrictEqual(yield* ok("GET", `${admin}/model-prices`), [replaced])
      assert.strictEqual((yield* call("DELETE", path)).status, 204)
      assert.deepStrictEqual(refusalOf(yield* call("DELETE", path)), { status: 404, code: "not_found", param: null })
    })
  )

  it.effect("prices: a star may end the name, and stand nowhere else", () =>
    Effect.gen(function* () {
      const body = { input_usd_per_million: 1, output_usd_per_million: 2 }
      const path = (model: string) => `${admin}/model-prices/${encodeURIComponent(model)}`
      assert.strictEqual(at(yield* ok("PUT", path("claude-*"), { body }), "model"), "claude-*")
      const refused = yield* call("PUT", path("cl*ude"), { body })
      assert.deepStrictEqual(refusalOf(refused), { status: 400, code: "invalid_configuration", param: "model" })
      assert.strictEqual((yield* call("DELETE", path("claude-*"))).status, 204)
    })
  )
})
