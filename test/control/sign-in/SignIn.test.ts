import { assert, layer as describeWith } from "@effect/vitest"
import { DateTime, Duration, Effect, Layer, Option, Redacted, Tracer } from "effect"
import { HttpServer, HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { RequestId } from "../../../src/control/api/schema/Errors.ts"
import { Operator } from "../../../src/control/api/schema/Security.ts"
import { Audit } from "../../../src/control/audit/Audit.ts"
import * as ControlApp from "../../../src/control/ControlApp.ts"
import { ListenerSessions, ofHolders } from "../../../src/control/session/ListenerSessions.ts"
import { Sessions } from "../../../src/control/session/Sessions.ts"
import { Database } from "../../../src/services/Database.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import * as Listener from "../Listener.ts"
import { admin, at, call, idOf, ok, operatorToken, refusalOf, suite } from "../Listener.ts"

const path = "/admin-ui/session"
const projects = `${admin}/projects`
const sameOrigin = { "sec-fetch-site": "same-origin" }

type Headers = Readonly<Record<string, string>>

const signIn = Effect.fnUntraced(function* (token: string, headers: Headers = sameOrigin) {
  const answer = yield* call("POST", path, { authorization: null, headers, body: { token } })
  assert.strictEqual(answer.status, 200, answer.text)
  const setCookie = String(answer.headers["set-cookie"])
  const cookie = setCookie.split(";", 1)[0] ?? ""
  const csrf = String(at(answer.json, "csrf", "value"))
  return { json: answer.json, setCookie, cookie, page: { ...sameOrigin, cookie, "x-svc-csrf": csrf } }
})

const as = (headers: Headers, method: "GET" | "POST" | "DELETE" = "GET", at = projects, body?: object) =>
  call(method, at, { authorization: null, headers, ...(body !== undefined && { body }) })
const codeOf = (headers: Headers) => Effect.map(as(headers), (answer) => refusalOf(answer).code)

const newToken = Effect.map(
  ok("POST", `${admin}/operator-tokens`, { body: { name: "browser", scopes: ["usage:read"] } }),
  (json) => ({ id: String(at(json, "token", "id")), raw: String(at(json, "raw_token")) })
)
const newKey = Effect.map(ok("POST", `${admin}/keys`, { body: { name: "ada", owner_type: "individual" } }), (json) => ({
  id: idOf(json, "key"),
  raw: String(at(json, "raw_key"))
}))

const fromSomewhere = Effect.provideService(
  HttpServerRequest.HttpServerRequest,
  HttpServerRequest.fromWeb(new Request("http://somewhere"))
)

/** The statements of `work` that look sessions up. */
const lookUpsOf = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  const statements: Array<unknown> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      const end = span.end
      span.end = (...given) => {
        statements.push(span.attributes.get("db.query.text"))
        end.apply(span, given)
      }
      return span
    }
  })
  yield* Effect.withTracer(work, tracer)
  return statements.filter((text) => String(text).includes("FROM operator_sessions"))
})

suite("Signing in", (it) => {
  it.effect("exchanges a token for a cookie that scripts cannot read, and says who is signed in", () =>
    Effect.gen(function* () {
      const { raw } = yield* newToken
      const { json, page, setCookie } = yield* signIn(raw)
      assert.match(setCookie, /^svc_session=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/)
      assert.deepInclude(json, { kind: "operator_token", name: "browser", scopes: ["usage:read"] })
      assert.strictEqual(at(json, "csrf", "header"), "x-svc-csrf")
      const shown = yield* as(page, "GET", path)
      assert.deepStrictEqual(shown.json, json)
      assert.strictEqual((yield* as(page)).status, 200)
      const stored = yield* Effect.flatMap(
        Database,
        ({ sql }) =>
          sql`SELECT count(*)::int AS n FROM operator_sessions WHERE position(${page.cookie} IN operator_sessions::text) > 0`
      )
      assert.deepStrictEqual(stored, [{ n: 0 }])
      const events = yield* Effect.flatMap(
        Database,
        ({ sql }) => sql`SELECT action, after_json->>'of' AS of FROM audit_events ORDER BY sequence DESC LIMIT 1`
      )
      assert.deepStrictEqual(events, [{ action: "sessions:sign_in", of: "OperatorToken" }])
    })
  )

  it.effect("a cookie counts only with its proof, and a bearer token wins over it", () =>
    Effect.gen(function* () {
      const { cookie, page } = yield* signIn(operatorToken)
      const other = yield* signIn(operatorToken)
      const { port } = new URL(yield* HttpServer.addressFormattedWith(Effect.succeed))
      const own = `http://127.0.0.1:${port}`
      assert.strictEqual(yield* codeOf({ cookie }), "cross_origin_request")
      for (const site of ["cross-site", "same-site", "none"]) {
        assert.strictEqual(yield* codeOf({ cookie, "sec-fetch-site": site }), "cross_origin_request")
      }
      assert.strictEqual(yield* codeOf({ cookie, origin: "http://evil.example" }), "cross_origin_request")
      assert.strictEqual(yield* codeOf({ cookie, "sec-fetch-site": "cross-site", origin: own }), "cross_origin_request")
      assert.strictEqual((yield* as({ cookie, origin: own })).status, 200)
      const create = (headers: Headers) => as(headers, "POST", projects, { name: `by-cookie-${headers["x-svc-csrf"]}` })
      const refused = yield* create({ ...sameOrigin, cookie })
      assert.deepStrictEqual(refusalOf(refused), { status: 403, code: "missing_csrf_header", param: null })
      assert.include(refused.text, "x-svc-csrf")
      const stolen = yield* create({ ...page, "x-svc-csrf": other.page["x-svc-csrf"] })
      assert.strictEqual(refusalOf(stolen).code, "missing_csrf_header")
      assert.strictEqual((yield* create(page)).status, 200)

      const bearer = (authorization: string, headers: Headers) => call("GET", projects, { authorization, headers })
      assert.strictEqual((yield* bearer(`Bearer ${operatorToken}`, { cookie: "svc_session=nonsense" })).status, 200)
      assert.strictEqual(refusalOf(yield* bearer("Bearer nonsense", page)).code, "malformed_authorization")
      assert.strictEqual(yield* codeOf({ ...page, cookie: "svc_session=nonsense" }), "invalid_session")
      // A cookie that another page of this host planted does not lock the operator out.
      assert.strictEqual((yield* as({ ...page, cookie: `svc_session=planted; ${cookie}` })).status, 200)
    })
  )

  it.effect("is refused to other sites, and makes a session of its own whatever the browser presents", () =>
    Effect.gen(function* () {
      for (const headers of [{ "sec-fetch-site": "cross-site" }, { origin: "http://evil.example" }]) {
        const refused = yield* call("POST", path, { authorization: null, headers, body: { token: operatorToken } })
        assert.deepStrictEqual(refusalOf(refused), { status: 403, code: "cross_origin_request", param: null })
        assert.isUndefined(refused.headers["set-cookie"])
      }
      const planted = "svc_session=planted-by-somebody-else"
      const first = yield* signIn(operatorToken, { ...sameOrigin, cookie: planted })
      assert.notStrictEqual(first.cookie, planted)
      const second = yield* signIn(operatorToken, { ...sameOrigin, cookie: first.cookie })
      assert.notStrictEqual(second.cookie, first.cookie)
      assert.strictEqual(yield* codeOf(first.page), "invalid_session")
      assert.strictEqual((yield* as(second.page)).status, 200)
      for (const token of ["nonsense", `op_live_${"0".repeat(64)}`, `rk_live_${"0".repeat(72)}`]) {
        const refused = yield* call("POST", path, { authorization: null, body: { token } })
        assert.deepStrictEqual([refused.status, refused.headers["set-cookie"]], [401, undefined], token)
      }
    })
  )

  it.effect("is refused to a token or key that does it too often, and to no other", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { raw } = yield* newKey
      const events = Effect.map(
        sql`SELECT count(*)::int AS n FROM audit_events WHERE action = 'sessions:sign_in'`,
        ([row]) => Number(row?.["n"])
      )
      const before = yield* events
      for (let times = 0; times < 10; times++) yield* signIn(raw)
      const refused = yield* call("POST", path, { authorization: null, headers: sameOrigin, body: { token: raw } })
      assert.deepStrictEqual(refusalOf(refused), { status: 429, code: "too_many_sign_ins", param: null })
      assert.match(String(refused.headers["retry-after"]), /^([1-9]|[1-5]\d|60)$/)
      assert.isUndefined(refused.headers["set-cookie"])
      assert.strictEqual(yield* events, before + 10)
      yield* signIn((yield* newKey).raw)
    })
  )

  it.effect("at an identity provider is not there until it is configured, which is said", () =>
    Effect.gen(function* () {
      for (const at of ["/oidc", "/oidc/callback?code=x&state=y"]) {
        const answer = yield* call("GET", path + at, { authorization: null })
        assert.deepStrictEqual(refusalOf(answer), { status: 404, code: "not_found", param: null })
        assert.include(answer.text, "IDENTITY_SIGN_IN_CLIENT_ID")
      }
    })
  )

  it.effect("ends when it is signed out, in all processes", () =>
    Effect.gen(function* () {
      const { cookie, page } = yield* signIn(operatorToken)
      const elsewhere = Effect.flatMap(Sessions, (sessions) =>
        sessions.find([cookie.slice("svc_session=".length)])
      ).pipe(Effect.provide(Sessions.layer.pipe(Layer.provide(Audit.layer), Layer.fresh)), fromSomewhere)
      assert.isTrue(Option.isSome(yield* elsewhere))
      assert.strictEqual(refusalOf(yield* as({ ...sameOrigin, cookie }, "DELETE", path)).code, "missing_csrf_header")
      const out = yield* as(page, "DELETE", path)
      assert.strictEqual(out.status, 204)
      assert.match(String(out.headers["set-cookie"]), /^svc_session=; Max-Age=0/)
      assert.isTrue(Option.isNone(yield* elsewhere))
      assert.strictEqual(yield* codeOf(page), "invalid_session")
      assert.strictEqual(refusalOf(yield* as(page, "GET", path)).code, "invalid_session")
      assert.strictEqual((yield* as(page, "DELETE", path)).status, 204)
    })
  )

  it.effect("counts as use of its token, once a minute", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { id, raw } = yield* newToken
      const { page } = yield* signIn(raw)
      const lastUse = Effect.map(
        sql`SELECT last_used_at > now() - interval '1 minute' AS recent FROM operator_tokens WHERE id = ${id}`,
        ([row]) => row?.["recent"]
      )
      yield* sql`UPDATE operator_tokens SET last_used_at = now() - interval '1 hour' WHERE id = ${id}`
      yield* as(page)
      assert.isFalse(yield* lastUse)
      yield* sql`UPDATE operator_sessions SET used_at = used_at - interval '1 minute' WHERE token_id = ${id}`
      yield* as(page)
      assert.isTrue(yield* lastUse)
    })
  )

  it.effect("ends with its token: rotated, revoked, expired", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      for (const end of [
        (id: string) => Effect.asVoid(ok("POST", `${admin}/operator-tokens/${id}/rotate`)),
        (id: string) => Effect.asVoid(ok("POST", `${admin}/operator-tokens/${id}/revoke`)),
        (id: string) => Effect.asVoid(sql`UPDATE operator_tokens SET expires_at = now() WHERE id = ${id}`)
      ]) {
        const token = yield* newToken
        const { page } = yield* signIn(token.raw)
        assert.strictEqual((yield* as(page)).status, 200)
        yield* end(token.id)
        assert.strictEqual(yield* codeOf(page), "invalid_session")
      }
    })
  )

  it.effect("says what happened to the gateway key that ended it, as the key itself is told", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      for (const [end, code] of [
        [(id: string) => Effect.asVoid(ok("POST", `${admin}/keys/${id}/disable`)), "disabled_virtual_key"],
        [(id: string) => Effect.asVoid(ok("POST", `${admin}/keys/${id}/revoke`)), "revoked_virtual_key"],
        [
          (id: string) => Effect.asVoid(sql`UPDATE api_keys SET expires_at = now() WHERE id = ${id}`),
          "expired_virtual_key"
        ]
      ] as const) {
        const key = yield* newKey
        const { page } = yield* signIn(key.raw)
        assert.strictEqual((yield* as(page, "GET", path)).status, 200)
        yield* end(key.id)
        const refused = yield* as(page, "GET", path)
        assert.deepStrictEqual(refusalOf(refused), { status: 401, code, param: null })
        const direct = yield* call("GET", "/admin-ui/v1/me", { authorization: `Bearer ${key.raw}` })
        assert.strictEqual(at(refused.json, "error", "message"), at(direct.json, "error", "message") ?? "")
        // a session that is over anyway says nothing of the key
        yield* sql`UPDATE operator_sessions SET expires_at = now() WHERE key_id = ${key.id}`
        assert.strictEqual(refusalOf(yield* as(page, "GET", path)).code, "invalid_session")
      }
    })
  )

  it.effect("with a gateway key opens what the key may see of itself, until the key is rotated", () =>
    Effect.gen(function* () {
      const key = yield* newKey
      const { json, page } = yield* signIn(key.raw)
      assert.deepInclude(json, { kind: "gateway_key", name: "ada", scopes: ["self"] })
      assert.strictEqual((yield* as(page, "GET", "/admin-ui/v1/guardrails")).status, 200)
      // to look at the key is no use of it, and who looked is in the audit log
      const { sql } = yield* Database
      assert.deepStrictEqual(yield* sql`SELECT last_used_at FROM api_keys WHERE id = ${key.id}`, [
        { last_used_at: null }
      ])
      const [event] =
        yield* sql`SELECT after_json FROM audit_events WHERE action = 'sessions:sign_in' ORDER BY sequence DESC`
      assert.deepInclude(Object(event?.["after_json"]), { of: "GatewayKey", id: key.id, name: "ada" })
      for (const path of [projects, `${admin}/nothing`, "/admin-ui/tasks/nothing"]) {
        const refused = yield* as(page, "GET", path)
        assert.strictEqual(refusalOf(refused).code, "invalid_session", path)
        assert.include(refused.text, "needs one of an operator token")
      }
      yield* ok("POST", `${admin}/keys/${key.id}/rotate`)
      assert.strictEqual(refusalOf(yield* as(page, "GET", "/admin-ui/v1/guardrails")).code, "invalid_session")
      const operator = yield* signIn(operatorToken)
      assert.strictEqual(refusalOf(yield* as(operator.page, "GET", "/admin-ui/v1/guardrails")).code, "invalid_session")
    })
  )
})

const portal = Listener.layer(EmbeddedDatabase.layer, { routes: Layer.mergeAll(ControlApp.portal) }).pipe(
  Layer.provide(Layer.succeed(ListenerSessions, ofHolders))
)

describeWith(portal, { excludeTestServices: true })("The listener of holders", (it) => {
  it.effect("takes no session of an operator", () =>
    Effect.gen(function* () {
      const cookie = `svc_session=${"A".repeat(43)}`
      const answer = yield* as({ ...sameOrigin, cookie }, "GET", "/admin-ui/v1/me")
      assert.deepInclude(refusalOf(answer), { status: 401, code: "missing_authorization" })
    })
  )
})

suite("Sessions", (it) => {
  it.effect("of keys end no session of an operator token, however many they are", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const sessions = yield* Sessions
      const token = yield* newToken
      const key = yield* newKey
      const create = (owner: Parameters<typeof sessions.create>[0], raw: string) =>
        Effect.map(sessions.create(owner, Redacted.make(raw)), Redacted.value)
      const isThere = (value: string) => Effect.map(sessions.find([value]), Option.isSome)
      const ofToken = yield* create({ _tag: "OperatorToken", id: token.id }, token.raw)
      const ofKey = yield* create({ _tag: "GatewayKey", id: key.id }, key.raw)
      const { id: other } = yield* newKey
      yield* sql`INSERT INTO operator_sessions (session_hash, key_id, secret_hash, created_at, used_at, expires_at)
        SELECT sha256(n::text::bytea), ${other}, sha256(''), now(), now() + interval '1 hour', now() + interval '1 day'
        FROM generate_series(1, 9999) AS n`
      const { id, raw } = yield* newKey
      assert.deepStrictEqual([yield* isThere(ofToken), yield* isThere(ofKey)], [true, true])
      yield* create({ _tag: "GatewayKey", id }, raw)
      assert.deepStrictEqual([yield* isThere(ofToken), yield* isThere(ofKey)], [true, false])
      yield* sql`DELETE FROM operator_sessions WHERE key_id = ${other}`
    }).pipe(
      Effect.provide(Sessions.layer.pipe(Layer.provide(Audit.layer), Layer.fresh)),
      Effect.provideService(Operator, { tokenId: null, scopes: ["*"], ip: null, userAgent: null }),
      Effect.provideService(RequestId, "sessions"),
      fromSomewhere
    )
  )

  it.effect("last twelve hours from their last use, are swept, and are twenty of one token at most", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const sessions = yield* Sessions
      const token = yield* newToken
      const create = Effect.map(
        sessions.create({ _tag: "OperatorToken", id: token.id }, Redacted.make(token.raw)),
        Redacted.value
      )
      const isThere = (value: string) => Effect.map(sessions.find([value]), Option.isSome)
      const first = yield* create
      yield* TestClock.adjust("11 hours")
      const used = yield* sessions.find([first])
      assert.deepStrictEqual(
        Option.map(used, ({ expiresAt }) => DateTime.toEpochMillis(expiresAt)),
        Option.some(Duration.toMillis("23 hours"))
      )
      yield* TestClock.adjust("11 hours")
      assert.isTrue(yield* isThere(first))
      yield* TestClock.adjust("12 hours")
      assert.isFalse(yield* isThere(first))
      const count = Effect.map(
        sql`SELECT count(*)::int AS n FROM operator_sessions WHERE token_id = ${token.id}`,
        ([row]) => row?.["n"]
      )
      const second = yield* create
      assert.strictEqual(yield* count, 1)
      yield* TestClock.adjust("2 minutes")
      const third = yield* create
      yield* TestClock.adjust("2 minutes")
      assert.isTrue(yield* isThere(second))
      for (let more = 0; more < 19; more++) yield* create
      assert.strictEqual(yield* count, 20)
      assert.deepStrictEqual([yield* isThere(second), yield* isThere(third)], [true, false])
    }).pipe(
      Effect.provide(Sessions.layer.pipe(Layer.provide(Audit.layer), Layer.fresh)),
      Effect.provideService(Operator, { tokenId: null, scopes: ["*"], ip: null, userAgent: null }),
      Effect.provideService(RequestId, "sessions"),
      fromSomewhere,
      Effect.provide(TestClock.layer())
    )
  )

  it.effect(
    "look up in one statement all cookies of a request, only for values that may be sessions, once a second",
    () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const wrong = ["A", "B", "C"].map((letter) => letter.repeat(43))
        const find = (...values: ReadonlyArray<string>) => lookUpsOf(sessions.find(values))
        assert.lengthOf(yield* find("nonsense", "x".repeat(42), "x".repeat(44), `${"x".repeat(42)}=`), 0)
        assert.lengthOf(yield* find(...wrong), 1)
        assert.lengthOf(yield* find(...wrong), 0)
        const token = yield* newToken
        const value = Redacted.value(
          yield* sessions.create({ _tag: "OperatorToken", id: token.id }, Redacted.make(token.raw))
        )
        assert.lengthOf(yield* find(...wrong, value), 1)
        assert.isTrue(Option.isSome(yield* sessions.find([...wrong, value])))
        yield* TestClock.adjust("1 second")
        assert.lengthOf(yield* find(...wrong), 1)
      }).pipe(
        Effect.provide(Sessions.layer.pipe(Layer.provide(Audit.layer), Layer.fresh)),
        Effect.provideService(Operator, { tokenId: null, scopes: ["*"], ip: null, userAgent: null }),
        Effect.provideService(RequestId, "sessions"),
        fromSomewhere,
        Effect.provide(TestClock.layer())
      )
  )
})
