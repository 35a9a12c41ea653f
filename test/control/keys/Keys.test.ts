import { createHash } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { Database } from "../../../src/services/Database.ts"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "../Listener.ts"

const keys = `${admin}/keys`

suite("Keys", (it) => {
  it.effect("a new key with a budget refuses models without a price, unless its policy says otherwise", () =>
    Effect.gen(function* () {
      const made = (body: object) =>
        Effect.map(ok("POST", `${admin}/keys`, { body: { owner_type: "individual", ...body } }), (json) =>
          at(json, "key", "policy", "unpriced_models")
        )
      assert.deepStrictEqual(
        [
          yield* made({}),
          yield* made({ policy: { rpm_limit: 1, max_cost_per_request: 1 } }),
          yield* made({ policy: { daily_budget_usd: 1 } }),
          yield* made({ policy: { monthly_budget_usd: 1, unpriced_models: "dearest" } }),
          yield* made({ preset: "developer" }),
          yield* made({ preset: "developer", policy: { daily_budget_usd: null } }),
          yield* made({ preset: "developer", policy: { unpriced_models: "flat" } })
        ],
        ["flat", "flat", "refuse", "dearest", "refuse", "flat", "flat"]
      )
    })
  )

  it.effect("the raw key is shown once; the store keeps its digest and its first characters", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const made = yield* ok("POST", keys, { body: { owner_type: "individual" } })
      const raw = String(at(made, "raw_key"))
      assert.match(raw, /^rk_live_[0-9a-f]{72}$/)
      const [row] = yield* sql`SELECT * FROM api_keys WHERE id = ${idOf(made, "key")}`
      assert.deepStrictEqual(row?.["key_hash"], new Uint8Array(createHash("sha256").update(raw).digest()))
      assert.strictEqual(row?.["key_prefix"], raw.slice(0, 16))
      const shown = yield* call("GET", `${keys}/${idOf(made, "key")}`)
      const key = at(made, "key")
      assert(Predicate.isObject(key))
      assert.deepInclude(shown.json, key)
      assert.notInclude(shown.text, raw)
    })
  )

  it.effect("a new key that says nothing works everywhere and never expires", () =>
    Effect.gen(function* () {
      const project_id = yield* Fixtures.project
      const made = yield* ok("POST", keys, { body: { project_id } })
      assert.deepStrictEqual(at(made, "key", "owner_type"), "project")
      assert.deepStrictEqual(at(made, "key", "expires_at"), null)
      assert.deepStrictEqual(at(made, "key", "policy"), {
        deny: false,
        allowed_routes: null,
        allowed_models: null,
        allowed_providers: null,
        allowed_services: null,
        allowed_hours_utc: null,
        allow_streaming: true,
        allow_tools: true,
        rpm_limit: null,
        tpm_limit: null,
        max_requests_per_day: null,
        max_tokens_per_day: null,
        daily_budget_usd: null,
        monthly_budget_usd: null,
        max_cost_per_request: null,
        unpriced_models: "flat",
        max_input_tokens_per_request: null,
        max_output_tokens_per_request: null,
        unused_key_auto_disable_after_days: null,
        max_request_body_bytes: null,
        max_response_body_bytes: null,
        max_stream_duration_seconds: null,
        max_sse_event_bytes: null,
        max_tool_call_count: null,
        max_tool_schema_bytes: null,
        max_concurrent_requests: null,
        policy_version: 1
      })
    })
  )

  it.effect("the owner must fit: a project that exists, or none for an individual key", () =>
    Effect.gen(function* () {
      const project_id = yield* Fixtures.project
      const create = (body: object) => Effect.map(call("POST", keys, { body }), refusalOf)
      const invalid = { status: 400, code: "invalid_project_payload", param: "project_id" }
      assert.deepStrictEqual(yield* create({}), invalid)
      assert.deepStrictEqual(yield* create({ project_id: null }), invalid)
      assert.deepStrictEqual(yield* create({ owner_type: "individual", project_id }), invalid)
      assert.deepStrictEqual(yield* create({ project_id: "00000000-0000-4000-8000-000000000000" }), {
        status: 404,
        code: "missing_project",
        param: "project_id"
      })

      const id = idOf(yield* ok("POST", keys, { body: { project_id } }), "key")
      const patch = (body: object) => call("PATCH", `${keys}/${id}`, { body })
      assert.deepStrictEqual(refusalOf(yield* patch({ project_id: null })), invalid)
      assert.deepStrictEqual(at((yield* patch({ owner_type: "individual" })).json, "project_id"), null)
      assert.deepStrictEqual(refusalOf(yield* patch({ project_id })), invalid)
      assert.deepStrictEqual(refusalOf(yield* patch({ owner_type: "project" })), invalid)
      assert.deepStrictEqual(at((yield* patch({ owner_type: "project", project_id })).json, "project_id"), project_id)
    })
  )

  it.effect("a key has the name that people call it by, until it is cleared; two may have the same", () =>
    Effect.gen(function* () {
      const project_id = yield* Fixtures.project
      const made = yield* ok("POST", keys, { body: { project_id, name: "ada's laptop" } })
      const twin = yield* ok("POST", keys, { body: { project_id, name: "ada's laptop" } })
      const nameless = yield* ok("POST", keys, { body: { project_id } })
      assert.deepStrictEqual(
        [made, twin, nameless].map((one) => at(one, "key", "name")),
        ["ada's laptop", "ada's laptop", null]
      )
      const path = `${keys}/${idOf(made, "key")}`
      assert.strictEqual(at(yield* ok("PATCH", path, { body: { disabled: true } }), "name"), "ada's laptop")
      assert.strictEqual(at(yield* ok("PATCH", path, { body: { name: "ada" } }), "name"), "ada")
      assert.strictEqual(at(yield* ok("PATCH", path, { body: { name: null } }), "name"), null)
      for (const name of ["", "a\nb", "n".repeat(129)]) {
        assert.deepInclude(refusalOf(yield* call("PATCH", path, { body: { name } })), { status: 422, param: "name" })
      }
    })
  )

  it.effect("the list can be of one project, of one team, or the key with a shown prefix", () =>
    Effect.gen(function* () {
      const project_id = yield* Fixtures.project
      const other = yield* Fixtures.project
      const create = (body: object) =>
        Effect.flatMap(ok("POST", keys, { body }), (made) => ok("GET", `${keys}/${idOf(made, "key")}`))
      const first = yield* create({ project_id })
      const second = yield* create({ project_id, team_id: `team of ${project_id}` })
      const third = yield* create({ project_id: other })
      const key_prefix = String(at(third, "key_prefix"))
      const listed = (query: Record<string, string>) => ok("GET", `${keys}?${new URLSearchParams(query)}`)
      assert.deepStrictEqual(yield* listed({ project_id }), [second, first])
      assert.deepStrictEqual(yield* listed({ project_id, limit: "1" }), [second])
      assert.deepStrictEqual(yield* listed({ team_id: `team of ${project_id}` }), [second])
      assert.deepStrictEqual(yield* listed({ key_prefix }), [third])
      assert.deepStrictEqual(yield* listed({ project_id, key_prefix }), [])
      const raw = `rk_live_${"0".repeat(72)}`
      assert.deepInclude(refusalOf(yield* call("GET", `${keys}?key_prefix=${raw}`)), {
        status: 422,
        param: "key_prefix"
      })
    })
  )

  it.effect("null clears, absent keeps", () =>
    Effect.gen(function* () {
      const made = yield* ok("POST", keys, {
        body: {
          owner_type: "individual",
          expires_at: "2031-01-01T00:00:00+01:00",
          rotation_due_at: "2030-06-01T12:00:00.5Z",
          policy: { rpm_limit: 3, daily_budget_usd: 0.5, allowed_models: ["m"], deny: true }
        }
      })
      const path = `${keys}/${idOf(made, "key")}`
      assert.strictEqual(at(made, "key", "expires_at"), "2030-12-31T23:00:00.000Z")
      assert.strictEqual(at(made, "key", "rotation_due_at"), "2030-06-01T12:00:00.500Z")

      const kept = yield* ok("PATCH", path, { body: {} })
      assert.deepStrictEqual(kept, { ...Object(at(made, "key")) })

      const cleared = yield* ok("PATCH", path, {
        body: { expires_at: null, policy: { rpm_limit: null, allowed_models: null } }
      })
      assert.strictEqual(at(cleared, "expires_at"), null)
      assert.strictEqual(at(cleared, "rotation_due_at"), "2030-06-01T12:00:00.500Z")
      assert.strictEqual(at(cleared, "policy", "rpm_limit"), null)
      assert.strictEqual(at(cleared, "policy", "allowed_models"), null)
      assert.strictEqual(at(cleared, "policy", "daily_budget_usd"), 0.5)
      assert.strictEqual(at(cleared, "policy", "deny"), true)

      const neutral = yield* ok("PATCH", path, { body: { policy: null } })
      assert.strictEqual(at(neutral, "policy", "daily_budget_usd"), null)
      assert.strictEqual(at(neutral, "policy", "deny"), false)
    })
  )

  it.effect("the version of a policy rises with each change of it, and with nothing else", () =>
    Effect.gen(function* () {
      const path = `${keys}/${yield* Fixtures.key}`
      const version = (body: object) =>
        Effect.map(ok("PATCH", path, { body }), (key) => at(key, "policy", "policy_version"))
      assert.strictEqual(yield* version({ policy: { rpm_limit: 1 } }), 2)
      assert.strictEqual(yield* version({ policy: { rpm_limit: 1 } }), 2)
      assert.strictEqual(yield* version({ disabled: true }), 2)
      assert.strictEqual(yield* version({ policy: {} }), 2)
      assert.strictEqual(yield* version({ policy: { allowed_routes: [] } }), 3)
    })
  )

  it.effect("a revoked key stays as it was", () =>
    Effect.gen(function* () {
      const path = `${keys}/${yield* Fixtures.key}`
      yield* ok("POST", `${path}/disable`)
      const revoked = yield* ok("POST", `${path}/revoke`)
      assert.isString(at(revoked, "revoked_at"))
      assert.deepStrictEqual(yield* ok("POST", `${path}/enable`), revoked)
      assert.deepStrictEqual(yield* ok("POST", `${path}/revoke`), revoked)
      const patch = { disabled: false, expires_at: "2030-01-01T00:00:00Z", policy: { rpm_limit: 1 } }
      assert.deepStrictEqual(yield* ok("PATCH", path, { body: patch }), revoked)
      assert.deepInclude(Object(yield* ok("GET", path)), Object(revoked))
    })
  )

  it.effect("a rotation keeps the key and gives it another secret; the one before lasts as long as its grace", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const made = yield* ok("POST", keys, {
        body: { owner_type: "individual", rotation_due_at: "2030-01-01T00:00:00Z", policy: { rpm_limit: 3 } }
      })
      const path = `${keys}/${idOf(made, "key")}`
      const hashOf = (raw: unknown) => createHash("sha256").update(String(raw)).digest("hex")
      const stored = Effect.map(
        sql`SELECT encode(key_hash, 'hex') AS hash, encode(previous_key_hash, 'hex') AS previous,
          previous_key_expires_at - now() BETWEEN interval '59 minutes' AND interval '1 hour' AS lasts FROM api_keys
          WHERE id = ${idOf(made, "key")}`,
        ([row]) => row
      )
      const first = yield* ok("POST", `${path}/rotate`, { body: { grace_seconds: 3600 } })
      assert.match(String(at(first, "raw_key")), /^rk_live_[0-9a-f]{72}$/)
      assert.deepStrictEqual(yield* stored, {
        hash: hashOf(at(first, "raw_key")),
        previous: hashOf(at(made, "raw_key")),
        lasts: true
      })
      const { key_prefix, previous_key_expires_at, rotation_due_at, updated_at: _, ...same } = Object(at(first, "key"))
      assert.deepInclude(at(made, "key"), {
        ...same,
        previous_key_expires_at: null,
        rotation_due_at: "2030-01-01T00:00:00.000Z"
      })
      assert.strictEqual(key_prefix, String(at(first, "raw_key")).slice(0, 16))
      assert.isString(previous_key_expires_at)
      assert.isNull(rotation_due_at)

      const second = yield* ok("POST", `${path}/rotate`, { body: {} })
      assert.deepStrictEqual(yield* stored, { hash: hashOf(at(second, "raw_key")), previous: null, lasts: null })
      assert.isNull(at(second, "key", "previous_key_expires_at"))
      const third = yield* ok("POST", `${path}/rotate`)
      assert.deepStrictEqual(yield* stored, { hash: hashOf(at(third, "raw_key")), previous: null, lasts: null })
      for (const grace_seconds of [-1, 2_592_001, 0.5, "1"]) {
        const refused = yield* call("POST", `${path}/rotate`, { body: { grace_seconds } })
        assert.deepStrictEqual(refusalOf(refused), { status: 422, code: "invalid_request", param: "grace_seconds" })
      }
      yield* ok("POST", `${path}/revoke`)
      const revoked = { status: 409, code: "key_revoked", param: null }
      assert.deepStrictEqual(refusalOf(yield* call("POST", `${path}/rotate`, { body: {} })), revoked)
    })
  )

  it.effect("the list is newest first, and the header leads through all of it", () =>
    Effect.gen(function* () {
      const made = yield* Effect.forEach(Array.from({ length: 5 }), () => Fixtures.key)
      const seen: Array<unknown> = []
      let cursor = ""
      do {
        const page = yield* call("GET", `${keys}?limit=2${cursor}`)
        assert(Array.isArray(page.json))
        assert.isAtMost(page.json.length, 2)
        seen.push(...page.json.map((key) => at(key, "id")))
        const next = page.headers["x-next-cursor"]
        cursor = next === undefined ? "" : `&cursor=${next}`
      } while (cursor !== "")
      assert.deepStrictEqual(seen.slice(0, 5), made.toReversed())
      assert.strictEqual(new Set(seen).size, seen.length)
      const whole = yield* call("GET", keys)
      assert.strictEqual(Array.isArray(whole.json) && whole.json.length, seen.length)
      assert.isUndefined(whole.headers["x-next-cursor"])
    })
  )
})
