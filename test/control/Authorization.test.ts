import { assert } from "@effect/vitest"
import { Context, Effect, Redacted } from "effect"
import { HttpApi } from "effect/http-api"
import { ControlApi } from "../../src/control/api/ControlApi.ts"
import { Authorization, KeyAuthorization, RequiredScopes, Scope } from "../../src/control/api/schema/Security.ts"
import { Database } from "../../src/services/Database.ts"
import * as Secret from "../../src/state/Secret.ts"
import { at, type Call, call, refusalOf, suite } from "./Listener.ts"

const guarded = endpoints().filter(({ authorized }) => authorized)

/** Wrong in itself: whoever is refused for the token was refused before the rest was looked at. */
const wrong = (method: string): Call => (method === "GET" ? {} : { text: "{" })

suite("Authorization", (it) => {
  it.effect.each(guarded)(
    "$name: refuses every kind of wrong token before it looks at anything else",
    ({ method, path }) =>
      Effect.gen(function* () {
        const unknown = Redacted.value(Secret.mint(Secret.operatorTokenPrefix))
        const virtualKey = Redacted.value(Secret.mint(Secret.keyPrefix))
        const rotated = yield* token(["*"], { active: false })
        const expected = [
          [null, "missing_authorization"],
          ["", "malformed_authorization"],
          ["Bearer", "malformed_authorization"],
          ["Bearer op_live_", "malformed_authorization"],
          [`Basic ${unknown}`, "malformed_authorization"],
          [unknown, "malformed_authorization"],
          [`Bearer ${unknown} ${unknown}`, "malformed_authorization"],
          [`Bearer ${"op_live_".padEnd(300, "a")}`, "malformed_authorization"],
          [`Bearer ${virtualKey}`, "malformed_authorization"],
          [`Bearer ${unknown}`, "invalid_operator_token"],
          [`Bearer ${rotated}`, "disabled_operator_token"]
        ] as const
        for (const [authorization, code] of expected) {
          const answer = yield* call(method, path, { ...wrong(method), authorization })
          assert.deepStrictEqual(refusalOf(answer), { status: 401, code, param: null }, `${authorization}`)
          assert.strictEqual(answer.headers["www-authenticate"], "Bearer")
          assert.strictEqual(at(answer.json, "error", "request_id"), answer.headers["x-request-id"])
        }
      })
  )

  it.effect.each(guarded)("$name: opens to each scope that it declares, and to no other", ({ method, path, scopes }) =>
    Effect.gen(function* () {
      assert.isAbove(scopes.length, 0, "declares its scopes")
      const others = Scope.literals.filter((scope) => scope !== "*" && !scopes.includes(scope))
      const refused = yield* call(method, path, { ...wrong(method), authorization: `Bearer ${yield* token(others)}` })
      assert.deepStrictEqual(refusalOf(refused), { status: 403, code: "insufficient_operator_scope", param: null })
      for (const scope of [...scopes, "*" as const]) {
        const answer = yield* call(method, path, { ...wrong(method), authorization: `Bearer ${yield* token([scope])}` })
        assert.notInclude([401, 403], answer.status, `${scope}: ${answer.text}`)
      }
    })
  )

  it.effect("only health, readiness, metrics and signing in are open", () =>
    Effect.sync(() =>
      assert.deepStrictEqual(
        endpoints().flatMap(({ authorized, byKey, name }) => (authorized || byKey ? [] : [name])),
        [
          ...["operational.health", "operational.readiness", "operational.metrics"],
          ...["session.create", "session.show", "session.end", "session.oidc", "session.oidcCallback"]
        ]
      )
    )
  )

  it.effect("a session opens what its token opens, with the proof that a page of this origin sent the request", () =>
    Effect.gen(function* () {
      // This one ends the session, with its token.
      const last = guarded.filter(({ name }) => name === "operator-token.rotate")
      const everything = yield* session(["*"])
      const audit = yield* session(["audit:read"], false)
      for (const { method, name, path, scopes } of [...guarded.filter((one) => !last.includes(one)), ...last]) {
        const as = (headers: Readonly<Record<string, string>>) =>
          Effect.map(call(method, path, { ...wrong(method), authorization: null, headers }), refusalOf)
        const { code: unproven } = yield* as({ cookie: everything.cookie, "sec-fetch-site": "same-site" })
        assert.strictEqual(unproven, "cross_origin_request", name)
        if (method !== "GET") {
          const { status, code } = yield* as({ cookie: everything.cookie, "sec-fetch-site": "same-origin" })
          assert.deepStrictEqual([status, code], [403, "missing_csrf_header"], name)
        }
        const { code: limited, status } = yield* as(audit)
        if (scopes.includes("audit:read")) assert.notInclude([401, 403], status, name)
        else assert.strictEqual(limited, "insufficient_operator_scope", name)
        assert.notInclude([401, 403], (yield* as(everything)).status, name)
      }
      const { code } = refusalOf(
        yield* call("GET", guarded[0]?.path ?? "", { authorization: null, headers: everything })
      )
      assert.strictEqual(code, "invalid_session")
    })
  )

  it.effect("a patch of a key needs the scope of each thing that it does", () =>
    Effect.gen(function* () {
      const path = "/admin-ui/admin/keys/00000000-0000-4000-8000-000000000000"
      const as = (scopes: ReadonlyArray<Scope>, body: object) =>
        Effect.flatMap(token(scopes), (value) => call("PATCH", path, { body, authorization: `Bearer ${value}` }))
      const both = { disabled: true, expires_at: null }
      const statuses = [
        yield* as(["keys:disable"], { disabled: true }),
        yield* as(["keys:disable"], { expires_at: null }),
        yield* as(["policies:update"], { expires_at: null }),
        yield* as(["policies:update"], { disabled: true }),
        yield* as(["keys:disable"], both),
        yield* as(["policies:update"], both),
        yield* as(["keys:disable", "policies:update"], both),
        yield* as(["policies:update"], { owner_type: "individual" }),
        yield* as(["policies:update"], { project_id: "00000000-0000-4000-8000-000000000000" }),
        yield* as(["policies:update", "keys:create"], { owner_type: "individual" })
      ].map(({ status }) => status)
      assert.deepStrictEqual(statuses, [404, 403, 404, 403, 403, 403, 404, 403, 403, 404])
    })
  )

  it.effect("a new key lifts no guardrail, unless its maker may change policies", () =>
    Effect.gen(function* () {
      const as = (scopes: ReadonlyArray<Scope>, guardrail_policy: object) =>
        Effect.flatMap(token(scopes), (value) =>
          call("POST", "/admin-ui/admin/keys", {
            body: { owner_type: "individual", guardrail_policy },
            authorization: `Bearer ${value}`
          })
        )
      const forbidden = { forbidden_guardrails: ["pii-redact"] }
      const overridden = { guardrail_config_overrides: { "pii-redact": { restore_output: true } } }
      const statuses = [
        yield* as(["keys:create"], forbidden),
        yield* as(["keys:create"], overridden),
        yield* as(["keys:create"], { mandatory_guardrails: ["pii-redact"] }),
        yield* as(["keys:create", "policies:update"], forbidden)
      ].map(({ status }) => status)
      assert.deepStrictEqual(statuses, [403, 403, 200, 200])
    })
  )

  it.effect("only a token that may do everything says who is believed at the front door", () =>
    Effect.gen(function* () {
      const as = (scopes: ReadonlyArray<Scope>, body: object) =>
        Effect.flatMap(token(scopes), (value) =>
          call("PATCH", "/admin-ui/admin/auth/front-door", { body, authorization: `Bearer ${value}` })
        )
      const secret = { trusted_gateway_header_secret: "a".repeat(40) }
      const statuses = [
        yield* as(["settings:update"], secret),
        yield* as(["settings:update"], { issuer: "https://issuer.example" }),
        yield* as(["settings:update"], { oidc_discovery_url: "https://issuer.example/.well-known" }),
        yield* as(["settings:update"], { clock_skew_seconds: 30 }),
        yield* as(["*"], secret),
        yield* as(["settings:update"], { trusted_gateway_header_secret: null })
      ].map(({ status }) => status)
      assert.deepStrictEqual(statuses, [403, 403, 403, 200, 200, 200])
    })
  )

  it.effect("notes the use of a token, at most once a minute", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const value = yield* token(["*"])
      const used = sql`SELECT last_used_at FROM operator_tokens WHERE NOT disabled AND revoked_at IS NULL`
      const visit = call("GET", "/admin-ui/admin/projects", { authorization: `Bearer ${value}` })
      assert.deepStrictEqual(yield* used, [{ last_used_at: null }])
      yield* visit
      const first = yield* used
      assert.instanceOf(first[0]?.["last_used_at"], Date)
      yield* visit
      assert.deepStrictEqual(yield* used, first)
      yield* sql`UPDATE operator_tokens SET last_used_at = now() - interval '2 minutes' WHERE NOT disabled`
      yield* visit
      assert.notDeepEqual(yield* used, first)
    })
  )
})

/** A token of its own, in place of the one that was active. */
const token = Effect.fnUntraced(function* (scopes: ReadonlyArray<Scope>, { active = true, alone = true } = {}) {
  const { sql } = yield* Database
  const value = Secret.mint(Secret.operatorTokenPrefix)
  if (active && alone) yield* sql`UPDATE operator_tokens SET disabled = true, revoked_at = now() WHERE NOT disabled`
  yield* sql`
    INSERT INTO operator_tokens (token_prefix, token_hash, scopes, disabled)
    VALUES (${Secret.displayPrefix(value)}, ${Secret.digest(value)}, ${scopes}, ${!active})`
  return Redacted.value(value)
})

/** The headers of a page of the control origin that is signed in with a token of its own. */
const session = Effect.fnUntraced(function* (scopes: ReadonlyArray<Scope>, alone = true) {
  const value = yield* token(scopes, { alone })
  const signedIn = yield* call("POST", "/admin-ui/session", { authorization: null, body: { token: value } })
  return {
    cookie: String(signedIn.headers["set-cookie"]).split(";", 1)[0] ?? "",
    "sec-fetch-site": "same-origin",
    "x-svc-csrf": String(at(signedIn.json, "csrf", "value"))
  }
})

/** Every endpoint of the API, with a path that can be called. */
function endpoints() {
  const found: Array<{
    readonly name: string
    readonly method: Parameters<typeof call>[0]
    readonly path: string
    readonly scopes: ReadonlyArray<Scope>
    readonly authorized: boolean
    /** Opens to a gateway key, and to no operator. */
    readonly byKey: boolean
  }> = []
  HttpApi.reflect(ControlApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group, middleware }) => {
      found.push({
        name: `${group.identifier}.${endpoint.identifier}`,
        method: endpoint.method,
        path: `${endpoint.path.replaceAll(/:\w+/g, "00000000-0000-4000-8000-000000000000")}?nonsense=1`,
        scopes: Context.get(endpoint.annotations, RequiredScopes),
        authorized: [...middleware].some((service) => service.key === Authorization.key),
        byKey: [...middleware].some((service) => service.key === KeyAuthorization.key)
      })
    }
  })
  return found
}
