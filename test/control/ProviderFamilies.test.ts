import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../src/services/Database.ts"
import * as Fixtures from "./Fixtures.ts"
import { admin, at, call, ok, refusalOf, suite } from "./Listener.ts"

const providers = `${admin}/providers`
const mappings = `${providers}/upstream-credentials`

const alone = Effect.flatMap(Database, ({ sql }) => sql`DELETE FROM provider_configs`)

const row = (name: string, more: object = {}) => ({
  body: { provider: "upstream", name, base_url: `https://${name}.test/v1`, credential: "sk-1", ...more }
})

suite("Provider rows of a family", (it) => {
  it.effect("present their credential as the vendor asks for it, unless they say otherwise", () =>
    Effect.gen(function* () {
      yield* alone
      const header = (json: Parameters<typeof at>[0]) => [
        at(json, "family"),
        at(json, "credential_header_mode"),
        at(json, "credential_header_name"),
        at(json, "credential_header_value_format")
      ]
      const claude = yield* ok("POST", providers, row("claude", { family: "anthropic" }))
      assert.deepStrictEqual(header(claude), ["anthropic", "custom_header", "x-api-key", "raw"])
      const gpt = yield* ok("POST", providers, row("gpt", { family: "openai" }))
      assert.deepStrictEqual(header(gpt), ["openai", "authorization_bearer", null, "raw"])
      const bearer = { family: "anthropic", enabled: false, credential_header_mode: "authorization_bearer" }
      const proxied = yield* ok("POST", providers, row("proxied", bearer))
      assert.deepStrictEqual(header(proxied), ["anthropic", "authorization_bearer", null, "raw"])
      assert.strictEqual(at(yield* ok("POST", providers, row("both")), "family"), null)
    })
  )

  it.effect("x-api-key is Anthropic's alone, and a family is of upstreams alone", () =>
    Effect.gen(function* () {
      yield* alone
      const named = { credential_header_mode: "custom_header", credential_header_name: "X-API-Key" }
      const internal = { provider: "internal-service", family: "openai" }
      for (const [more, param] of [
        [{ ...named, family: "openai" }, "credential_header_name"],
        [named, "credential_header_name"],
        [internal, "family"]
      ] as const) {
        const refused = refusalOf(yield* call("POST", providers, row("one", more)))
        assert.deepStrictEqual(refused, { status: 400, code: "invalid_provider_config_payload", param })
      }
      const claude = yield* ok("POST", providers, row("claude", { family: "anthropic" }))
      const path = `${providers}/${at(claude, "id")}`
      const refused = refusalOf(yield* call("PATCH", path, { body: { family: null } }))
      assert.strictEqual(refused.param, "credential_header_name")
      const moved = yield* ok("PATCH", path, {
        body: { family: null, credential_header_mode: "authorization_bearer", credential_header_name: null }
      })
      assert.strictEqual(at(moved, "family"), null)
    })
  )

  it.effect("one of each family and one of both may be enabled", () =>
    Effect.gen(function* () {
      yield* alone
      for (const family of ["openai", "anthropic", null]) {
        yield* ok("POST", providers, row(`first-${family}`, { family }))
        const second = yield* call("POST", providers, row(`second-${family}`, { family }))
        assert.deepStrictEqual(refusalOf(second), { status: 409, code: "duplicate_provider_config", param: "enabled" })
      }
    })
  )

  it.effect("a mapping says whose upstream its credential is for, where there are two", () =>
    Effect.gen(function* () {
      yield* alone
      const target_id = yield* Fixtures.key
      const upsert = (more: object) =>
        call("POST", mappings, { body: { scope: "key", target_id, credential: "sk-own", ...more } })
      // both families go to UPSTREAM_BASE_URL
      assert.strictEqual(at((yield* upsert({})).json, "credential_origin"), null)
      yield* ok("POST", providers, row("claude", { family: "anthropic" }))
      const refused = yield* upsert({})
      assert.deepStrictEqual(refusalOf(refused), {
        status: 400,
        code: "invalid_provider_config_payload",
        param: "family"
      })
      assert.strictEqual(at((yield* upsert({ family: "anthropic" })).json, "credential_origin"), "https://claude.test")
      assert.strictEqual(at((yield* upsert({ family: "openai" })).json, "credential_origin"), null)
      yield* ok("POST", providers, row("gpt"))
      assert.strictEqual(at((yield* upsert({ family: "openai" })).json, "credential_origin"), "https://gpt.test")
      yield* ok("POST", `${mappings}`, { body: { scope: "key", target_id, enabled: false } })
    })
  )

  it.effect("a base is stored as it was typed, but for a slash at its end; its path moves no credential", () =>
    Effect.gen(function* () {
      yield* alone
      const created = yield* ok("POST", providers, row("path", { base_url: "HTTPS://Path.test:443/api/v1/" }))
      assert.strictEqual(at(created, "base_url"), "https://path.test/api/v1")
      const path = `${providers}/${at(created, "id")}`
      const moved = yield* ok("PATCH", path, { body: { base_url: "https://path.test/v1beta/openai" } })
      assert.deepInclude(moved, { base_url: "https://path.test/v1beta/openai", credential_configured: true })
      const gone = yield* ok("PATCH", path, { body: { base_url: "https://other.test/v1beta/openai" } })
      assert.deepInclude(gone, { credential_cleared: true, credential_configured: false })
    })
  )
})
