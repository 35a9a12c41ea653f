import { assert, describe, layer as describeWith } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { Database } from "../../../src/services/Database.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import { refusing } from "../../upstream/ScriptedServer.ts"
import { admin, at, call, layer, ok, refusalOf, suite } from "../Listener.ts"
import { json, type Saying, serve } from "../StudioServer.ts"

const connection = `${admin}/studio/connection`
const test = `${connection}/test`
const services = `${admin}/studio/services`

const connect = (body: object) => ok("PATCH", connection, { body })
const unset = { base_url: null, token_configured: false, source: "unset", updated_at: null }

suite("Studio", (it) => {
  it.effect("the connection is stored, trimmed and cleared; its token is never shown", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      assert.deepStrictEqual(yield* ok("GET", connection), unset)
      const stored = yield* connect({ base_url: "https://Studio.example/base//", token: "studio-canary" })
      assert.deepInclude(stored, {
        base_url: "https://studio.example/base",
        token_configured: true,
        source: "persisted"
      })
      assert.deepStrictEqual(yield* ok("GET", connection), stored)
      const [row] = yield* sql`SELECT sealed_token FROM studio_connection_settings`
      assert.match(String(row?.["sealed_token"]), /^v1\./)

      const moved = yield* connect({ base_url: "http://other.example:9000" })
      assert.deepInclude(moved, {
        base_url: "http://other.example:9000",
        token_configured: false,
        credential_cleared: true
      })
      const kept = yield* connect({ token: "studio-canary" })
      assert.deepInclude(kept, { base_url: "http://other.example:9000", token_configured: true })
      assert.deepStrictEqual(yield* connect({}), kept)
      assert.notProperty(yield* connect({ base_url: "HTTP://Other.Example:9000/below" }), "credential_cleared")
      assert.deepInclude(yield* connect({ base_url: "http://other.example:9000" }), { token_configured: true })
      assert.deepInclude(yield* connect({ token: null }), {
        base_url: "http://other.example:9000",
        token_configured: false
      })
      assert.deepStrictEqual(yield* connect({ base_url: null }), unset)
      assert.deepStrictEqual(yield* connect({ base_url: null, token: null }), unset)
      assert.deepStrictEqual(yield* sql`SELECT 1 FROM studio_connection_settings`, [])
      const audit = yield* call("GET", `${admin}/audit-events?target_type=studio_connection`)
      assert.notInclude(audit.text, "canary")
    })
  )

  it.effect("what cannot be an address or a token is refused by its field, and nothing is stored", () =>
    Effect.gen(function* () {
      const wrong = [
        [{ base_url: "studio.example" }, "base_url"],
        [{ base_url: "ftp://studio.example" }, "base_url"],
        [{ base_url: "" }, "base_url"],
        [{ base_url: "https://user:canary@studio.example" }, "base_url"],
        [{ base_url: "https://studio.example/?q" }, "base_url"],
        [{ base_url: "https://studio.example", token: "two words" }, "token"],
        [{ base_url: "https://studio.example", token: "" }, "token"],
        [{ base_url: null, token: "token" }, "token"],
        [{ token: "token" }, "base_url"]
      ] as const
      for (const [body, param] of wrong) {
        const answer = yield* call("PATCH", connection, { body })
        const refusal = { status: 400, code: "invalid_studio_connection_payload", param }
        assert.deepStrictEqual(refusalOf(answer), refusal, JSON.stringify(body))
        assert.notInclude(answer.text, "canary")
      }
      assert.deepStrictEqual(refusalOf(yield* call("PATCH", connection, { body: { url: "x" } })), {
        status: 422,
        code: "invalid_request",
        param: "url"
      })
      assert.deepStrictEqual(yield* ok("GET", connection), unset)
    })
  )

  it.effect("without a studio, test and list say how to get one", () =>
    Effect.gen(function* () {
      for (const answer of [yield* call("POST", test), yield* call("GET", services)]) {
        assert.deepStrictEqual(refusalOf(answer), { status: 409, code: "studio_unconfigured", param: null })
        assert.include(answer.text, "SVC_STUDIO_BASE_URL")
      }
    })
  )

  it.effect("asks the studio for its services, with the token as a bearer, and maps them", () =>
    Effect.gen(function* () {
      const studio = yield* serve(json({ services: [row] }))
      yield* connect({ base_url: `${studio.origin}/base/`, token: "studio-token" })
      assert.deepStrictEqual(yield* ok("POST", test), { ok: true, service_count: 1 })
      assert.deepStrictEqual(yield* ok("GET", services), [mapped])
      yield* connect({ token: null })
      studio.says(json([row, row]))
      assert.deepStrictEqual(yield* ok("POST", test), { ok: true, service_count: 2 })
      const asked = { method: "GET", url: "/base/studio/gateway/services" }
      assert.deepStrictEqual(studio.asked, [
        { ...asked, authorization: "Bearer studio-token" },
        { ...asked, authorization: "Bearer studio-token" },
        { ...asked, authorization: undefined }
      ])
      yield* connect({ base_url: null })
    })
  )

  it.effect("a studio that cannot be used is 502 with the reason, and without the token", () =>
    Effect.gen(function* () {
      const studio = yield* serve()
      yield* connect({ base_url: studio.origin, token: "studio-canary" })
      const sayings: ReadonlyArray<readonly [Saying, RegExp]> = [
        [{ status: 401 }, /status 401: it does not accept the token/],
        [{ status: 500, body: "studio-canary" }, /status 500/],
        [{ status: 302, headers: { location: "http://127.0.0.1:1/" } }, /redirect/],
        [{ body: "<html>" }, /list of services/],
        [json({ rows: [] }), /list of services/],
        [json({ services: [{ name: "without an id" }] }), /services\.0: /],
        [json({ services: [{ service_id: "a", tags: "none" }] }), /services\.0\.tags: /],
        [{ body: "x".repeat(4_194_305) }, /limit of 4194304 bytes/]
      ]
      for (const [saying, reason] of sayings) {
        studio.says(saying)
        const answer = yield* call("GET", services)
        assert.deepStrictEqual(refusalOf(answer), { status: 502, code: "studio_unavailable", param: null })
        assert.match(answer.text, reason)
        assert.notInclude(answer.text, "canary")
        assert.strictEqual((yield* call("POST", test)).status, 502)
      }
      for (const base_url of [yield* refusing, "http://169.254.169.254", "http://nobody.invalid"]) {
        yield* connect({ base_url })
        assert.deepInclude(refusalOf(yield* call("POST", test)), { status: 502, code: "studio_unavailable" })
      }
      yield* connect({ base_url: null })
    })
  )
})

const row = {
  service_id: 7,
  name: "Übersetzung (beta)",
  display_name: "Translation",
  base_url: "http://translation.internal:9000",
  capabilities_path: "/capabilities",
  health_check_method: "head",
  environment: "staging",
  status: "active",
  tags: ["language", "beta"],
  auth_mode: "bearer",
  allowed_methods: ["get", "OPTIONS", "POST"],
  default_pricing: [{ json_pointer: "/quality", equals: "high", cost_mode: "fixed", estimated_cost_usd: 0.5 }]
}

const mapped = {
  studio_service_id: "7",
  name: "ubersetzung-beta",
  display_name: "Translation",
  environment: "staging",
  status: "active",
  base_url: "http://translation.internal:9000",
  tags: ["language", "beta"],
  route_pattern: "/services/ubersetzung-beta/*",
  import_request: {
    studio_service_id: "7",
    name: "ubersetzung-beta",
    project_id: null,
    route_pattern: "/services/ubersetzung-beta/*",
    upstream_base_url: "http://translation.internal:9000",
    health_check_path: "/capabilities",
    health_check_method: "HEAD",
    allowed_methods: ["GET", "POST"],
    category: "language",
    default_pricing: { pricing_rules: row.default_pricing }
  }
}

const ofEnvironment = Option.some({
  base_url: "http://127.0.0.1:1",
  token: Option.some(Redacted.make("environment-token"))
})
const options = { excludeTestServices: true } as const

describe("Studio of the environment", () => {
  describeWith(layer(EmbeddedDatabase.layer, { studio: ofEnvironment }), options)("start-up rule 5", (it) => {
    it.effect("what is stored overrides it as a whole; clearing the address makes it count again", () =>
      Effect.gen(function* () {
        const environment = {
          base_url: "http://127.0.0.1:1",
          token_configured: true,
          source: "environment",
          updated_at: null
        }
        assert.deepStrictEqual(yield* ok("GET", connection), environment)
        assert.deepStrictEqual(yield* connect({ token: null }), environment)
        const studio = yield* serve(json([]))
        assert.deepInclude(yield* connect({ base_url: studio.origin }), {
          source: "persisted",
          token_configured: false
        })
        yield* ok("POST", test)
        assert.deepStrictEqual(
          studio.asked.map(({ authorization }) => authorization),
          [undefined]
        )
        assert.deepStrictEqual(yield* connect({ base_url: null }), environment)
        const own = yield* connect({ token: "another" })
        assert.deepInclude(own, { base_url: "http://127.0.0.1:1", source: "persisted", token_configured: true })
        assert.strictEqual(at(yield* connect({ base_url: null }), "source"), "environment")
      })
    )
  })
})
