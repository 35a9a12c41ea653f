import { assert, layer as describeWith } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { disabledAuth, StartupAuthSettings, secretContext } from "../../../src/policy/AuthSettings.ts"
import { Database } from "../../../src/services/Database.ts"
import { Vault } from "../../../src/state/Vault.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import { admin, at, call, layer, ok, refusalOf, suite } from "../Listener.ts"

const path = `${admin}/auth/front-door`

const get = ok("GET", path)
const patch = (body: object) => call("PATCH", path, { body })
const forget = Effect.flatMap(Database, ({ sql }) => sql`DELETE FROM gateway_auth_settings`)

const provider = {
  tenant_id: "tenant-1",
  audience: "api://gateway",
  issuer: "https://issuer.example/v2.0",
  oidc_discovery_url: "https://issuer.example/.well-known/openid-configuration"
}

const unset = {
  source: "unset",
  updated_at: null,
  svc_key_header: "X-Svc-Key",
  identity_provider: {
    enabled: false,
    tenant_id: null,
    audience: null,
    issuer: null,
    oidc_discovery_url: null,
    required_scope: null,
    required_role: null,
    allowed_groups: [],
    accepted_algorithms: ["RS256"],
    jwks_cache_ttl_seconds: 300,
    clock_skew_seconds: 60
  },
  trusted_gateway: { trusted_header_enabled: false, secret_configured: false }
}

suite("Front door", (it) => {
  it.effect("is unset at first; what is saved stays, what is absent is kept, null clears", () =>
    Effect.gen(function* () {
      yield* forget
      assert.deepStrictEqual(yield* get, unset)
      const saved = yield* patch({
        ...provider,
        identity_enabled: true,
        svc_key_header: "X-Team-Key",
        required_scope: "Models.Use",
        allowed_groups: ["a", "b"],
        accepted_algorithms: ["ES256", "RS512"],
        clock_skew_seconds: 0
      })
      assert.deepInclude(saved.json, { source: "persisted", svc_key_header: "X-Team-Key" })
      assert.deepStrictEqual(at(saved.json, "identity_provider"), {
        ...unset.identity_provider,
        ...provider,
        enabled: true,
        required_scope: "Models.Use",
        allowed_groups: ["a", "b"],
        accepted_algorithms: ["ES256", "RS512"],
        clock_skew_seconds: 0
      })
      assert.match(String(at(saved.json, "updated_at")), /^\d{4}-\d\d-\d\dT.*Z$/)
      assert.deepStrictEqual(yield* get, saved.json)
      const cleared = yield* patch({
        svc_key_header: null,
        required_scope: null,
        allowed_groups: null,
        accepted_algorithms: null,
        clock_skew_seconds: null
      })
      assert.deepStrictEqual(at(cleared.json, "identity_provider"), {
        ...unset.identity_provider,
        ...provider,
        enabled: true
      })
      assert.strictEqual(at(cleared.json, "svc_key_header"), "X-Svc-Key")
    })
  )

  it.effect("of two people, the second is refused, also where nothing was stored or is stored any more", () =>
    Effect.gen(function* () {
      yield* forget
      const first = yield* patch({ required_role: "First", expected_updated_at: null })
      const expected_updated_at = at(first.json, "updated_at")
      const changed = { status: 409, code: "changed_since_read", param: "expected_updated_at" }
      assert.deepStrictEqual(refusalOf(yield* patch({ required_role: "Second", expected_updated_at: null })), changed)
      assert.deepStrictEqual(yield* get, first.json)
      yield* forget
      assert.deepStrictEqual(refusalOf(yield* patch({ required_role: "Second", expected_updated_at })), changed)
      assert.deepStrictEqual(yield* get, unset)
    })
  )

  it.effect("keeps the secret sealed, says only whether there is one, and gives it up on null", () =>
    Effect.gen(function* () {
      yield* forget
      const { sql } = yield* Database
      const vault = yield* Vault
      const trusted = (json: Parameters<typeof at>[0]) => at(json, "trusted_gateway")
      const on = yield* patch({ trusted_gateway_header_enabled: true, trusted_gateway_header_secret: "first-secret" })
      assert.deepStrictEqual(trusted(on.json), { trusted_header_enabled: true, secret_configured: true })
      const kept = yield* patch({ required_role: "Reader" })
      assert.deepStrictEqual(trusted(kept.json), { trusted_header_enabled: true, secret_configured: true })
      const [row] = yield* sql`SELECT sealed_secret FROM gateway_auth_settings`
      const secret = yield* vault.open(String(row?.["sealed_secret"]), secretContext)
      assert.strictEqual(Redacted.value(secret), "first-secret")
      assert.deepStrictEqual(
        refusalOf(yield* patch({ trusted_gateway_header_secret: null })),
        incomplete("trusted_gateway_header_secret")
      )
      const off = yield* patch({ trusted_gateway_header_enabled: false, trusted_gateway_header_secret: null })
      assert.deepStrictEqual(trusted(off.json), { trusted_header_enabled: false, secret_configured: false })
    })
  )

  it.effect.each<[body: object, status: number, code: string, param: string]>([
    [{ identity_enabled: true }, 400, "invalid_configuration", "tenant_id"],
    [{ ...provider, audience: null, identity_enabled: true }, 400, "invalid_configuration", "audience"],
    [{ trusted_gateway_header_enabled: true }, 400, "invalid_configuration", "trusted_gateway_header_secret"],
    [{ trusted_gateway_header_secret: "two words" }, 400, "invalid_configuration", "trusted_gateway_header_secret"],
    [{ svc_key_header: "two words" }, 400, "invalid_configuration", "svc_key_header"],
    [{ svc_key_header: "" }, 400, "invalid_configuration", "svc_key_header"],
    [{ svc_key_header: "Authorization" }, 400, "invalid_configuration", "svc_key_header"],
    [{ svc_key_header: "X-AIH-API-Key" }, 400, "invalid_configuration", "svc_key_header"],
    [{ oidc_discovery_url: "ftp://issuer.example" }, 400, "invalid_configuration", "oidc_discovery_url"],
    [{ oidc_discovery_url: "https://user:pw@issuer.example" }, 400, "invalid_configuration", "oidc_discovery_url"],
    [{ accepted_algorithms: ["HS256"] }, 422, "invalid_request", "accepted_algorithms.0"],
    [{ accepted_algorithms: ["none"] }, 422, "invalid_request", "accepted_algorithms.0"],
    [{ accepted_algorithms: [] }, 422, "invalid_request", "accepted_algorithms"],
    [{ jwks_cache_ttl_seconds: 0 }, 422, "invalid_request", "jwks_cache_ttl_seconds"],
    [{ clock_skew_seconds: 601 }, 422, "invalid_request", "clock_skew_seconds"],
    [{ identity_enabled: null }, 422, "invalid_request", "identity_enabled"],
    [{ tenant: "x" }, 422, "invalid_request", "tenant"]
  ])("refuses %j and changes nothing", ([body, status, code, param]) =>
    Effect.gen(function* () {
      yield* forget
      assert.deepStrictEqual(refusalOf(yield* patch(body)), { status, code, param })
      assert.deepStrictEqual(yield* get, unset)
    })
  )

  it.effect("loses none of two updates at once", () =>
    Effect.gen(function* () {
      yield* forget
      yield* Effect.all([patch({ required_scope: "s" }), patch({ required_role: "r" })], { concurrency: 2 })
      assert.deepInclude(at(yield* get, "identity_provider"), { required_scope: "s", required_role: "r" })
    })
  )
})

const startup = Layer.succeed(
  StartupAuthSettings,
  Option.some({
    settings: { ...disabledAuth, ...provider, identity_enabled: true, trusted_gateway_header_enabled: true },
    secret: Option.some(Redacted.make("startup-secret"))
  })
)

describeWith(Layer.provide(layer(EmbeddedDatabase.layer), startup), {
  excludeTestServices: true
})("Front door, with an environment that asks for identities", (it) => {
  it.effect("shows the environment, starts from it, and then decides alone", () =>
    Effect.gen(function* () {
      const first = yield* get
      assert.deepInclude(first, { source: "environment", updated_at: null })
      const saved = yield* patch({ required_role: "Reader" })
      assert.deepInclude(saved.json, { source: "persisted" })
      // whoever adds a rule does not let anybody in by it
      assert.deepStrictEqual(at(saved.json, "identity_provider"), {
        ...Object(at(first, "identity_provider")),
        required_role: "Reader"
      })
      const { sql } = yield* Database
      const vault = yield* Vault
      const [row] = yield* sql`SELECT sealed_secret FROM gateway_auth_settings`
      const secret = yield* vault.open(String(row?.["sealed_secret"]), secretContext)
      assert.strictEqual(Redacted.value(secret), "startup-secret")
      const off = yield* patch({ identity_enabled: false, trusted_gateway_header_enabled: false })
      assert.isFalse(at(off.json, "identity_provider", "enabled"))
      assert.deepInclude(yield* get, { source: "persisted" })
    })
  )
})

const incomplete = (param: string) => ({ status: 400, code: "invalid_configuration", param })
