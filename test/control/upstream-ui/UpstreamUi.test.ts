import { assert, layer as describeWith } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { HttpServer } from "effect/http"
import type { Scope } from "../../../src/control/api/schema/Security.ts"
import { UpstreamUiSessions } from "../../../src/control/upstream-ui/UpstreamUiSessions.ts"
import { noUpstreams } from "../../../src/policy/routes/StartupUpstreams.ts"
import { Database } from "../../../src/services/Database.ts"
import * as Secret from "../../../src/state/Secret.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import * as Upstream from "../../gateway/ScriptedUpstream.ts"
import { admin, at, type Call, call, layer, ok, operatorToken, refusalOf } from "../Listener.ts"

const ui = "/admin-ui/upstream-ui"

let script: Upstream.Script = Upstream.json({})
const sent: Array<Upstream.Sent> = []
const upstream = Upstream.layer((sink, request) => script(sink, request), sent)

/** What the upstream answers from now on; what it was asked before is forgotten. */
const answering = (next: Upstream.Script) =>
  Effect.sync(() => {
    script = next
    sent.length = 0
  })

const options = { excludeTestServices: true } as const

/** Credentials are stored as they are, so that a test can store one. */
const listener = layer(EmbeddedDatabase.layer, { vaultKey: Option.none(), upstream })

describeWith(layer(EmbeddedDatabase.layer, { upstream, startup: noUpstreams }), options)(
  "The UI of two upstreams",
  (it) => {
    it.effect("is none: each serves one family alone", () =>
      Effect.gen(function* () {
        yield* answering(Upstream.json({}))
        for (const family of ["openai", "anthropic"]) {
          const body = { provider: "upstream", name: family, family, base_url: "https://up.test", credential: "sk" }
          yield* ok("POST", `${admin}/providers`, { body })
        }
        const refused = yield* call("GET", ui)
        assert.deepStrictEqual(refusalOf(refused), { status: 409, code: "upstream_unconfigured", param: null })
        assert.include(refused.text, "No upstream serves both families")
        assert.deepStrictEqual(sent, [])
      })
    )
  }
)

describeWith(listener, options)("The upstream's UI", (it) => {
  it.effect("is for operators alone, whatever ui_exposure says, and takes no cookie", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const reader = yield* token(["usage:read"])
      const virtualKey = Redacted.value(Secret.mint(Secret.keyPrefix))
      const refusals = [
        [null, 401, "missing_authorization"],
        [`Bearer ${virtualKey}`, 401, "malformed_authorization"],
        [`Bearer ${Redacted.value(Secret.mint(Secret.operatorTokenPrefix))}`, 401, "invalid_operator_token"],
        [`Bearer ${operatorToken}`, 401, "disabled_operator_token"],
        [`Bearer ${reader}`, 403, "insufficient_operator_scope"]
      ] as const
      const paths = [
        ui,
        `${ui}/`,
        `${ui}/keys`,
        ...["/key/list", "/v1/agents", "/get_image", "/models", "/user/info", "/sso/x"].map((path) => ui + path)
      ]
      for (const path of paths) {
        for (const method of ["GET", "POST", "DELETE"] as const) {
          for (const [authorization, status, code] of refusals) {
            const answer = yield* call(method, path, { authorization, ...(method === "POST" && { text: "{" }) })
            assert.deepStrictEqual(refusalOf(answer), { status, code, param: null }, `${method} ${path}`)
          }
          const cookie = `svc_upstream_ui_session=${yield* session}`
          const withCookie = yield* call(method, path, { authorization: null, headers: { cookie } })
          assert.strictEqual(withCookie.status, 401)
        }
      }
      assert.deepStrictEqual(sent, [])
      yield* reinstate
      for (const path of paths) {
        assert.strictEqual((yield* call("GET", path)).status, 200, path)
      }
      assert.deepStrictEqual(
        sent.map(({ target }) => target),
        ["/ui", "/ui/", "/ui/keys", ...paths.slice(3).map((path) => path.slice(ui.length))]
      )
    })
  )

  it.effect("is nowhere but below its prefix", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      for (const path of [
        "/v1/chat/completions",
        "/v1/models",
        "/healthz",
        "/admin/keys",
        "/spend/logs",
        `${ui}x`,
        "/key/list"
      ]) {
        assert.strictEqual((yield* call("POST", path, { body: {} })).status, 404, path)
      }
      assert.deepStrictEqual(sent, [])
    })
  )

  it.effect("sends the upstream's own credential, and nothing that identifies the operator", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const headers = {
        "x-svc-key": "mine",
        "x-api-key": "mine",
        "x-upstream-key": "mine",
        "x-custom": "kept",
        cookie: "token=mine",
        "content-type": "text/plain",
        "x-request-id": "ui-1"
      }
      yield* call("POST", `${ui}/key/generate?a=%2F`, { headers, text: "the body" })
      const [first] = sent
      assert.deepInclude(first, {
        origin: "https://upstream.test",
        method: "POST",
        target: "/key/generate?a=%2F",
        text: "the body"
      })
      const fields = new Map(first?.headers.map((name, i) => [name, first.headers[i + 1]]))
      assert.strictEqual(fields.get("authorization"), "Bearer startup-secret")
      assert.strictEqual(fields.get("x-custom"), "kept")
      assert.strictEqual(fields.get("x-svc-request-id"), "ui-1")
      assert.strictEqual(fields.get("accept-encoding"), "identity")
      assert.notInclude(first?.headers ?? [], "mine")
      assert.isFalse(first?.headers.some((value) => value.includes(operatorToken) || value.includes("token=")))

      const row = {
        provider: "upstream",
        name: "ui",
        base_url: "https://elsewhere.test",
        credential: "provider-secret",
        credential_header_mode: "custom_header",
        credential_header_name: "x-own-key"
      }
      const made = yield* ok("POST", `${admin}/providers`, { body: row })
      yield* call("GET", ui, { headers: { "x-own-key": "mine" } })
      assert.strictEqual(sent[1]?.origin, "https://elsewhere.test")
      assert.include(sent[1]?.headers ?? [], "provider-secret")
      assert.notInclude(sent[1]?.headers ?? [], "mine")
      yield* ok("DELETE", `${admin}/providers/${at(made, "id")}`)
    })
  )

  it.effect("strips the gateway key's header by the name that the front door gives it, also once it is renamed", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const headers = { "X-Team-Key": "mine" }
      yield* call("GET", ui, { headers })
      assert.include(sent[0]?.headers ?? [], "mine")
      yield* ok("PATCH", `${admin}/auth/front-door`, { body: { svc_key_header: "x-TEAM-key" } })
      yield* call("GET", ui, { headers: { ...headers, "x-svc-key": "mine" } })
      assert.notInclude(sent[1]?.headers ?? [], "mine")
      yield* ok("PATCH", `${admin}/auth/front-door`, { body: { svc_key_header: null } })
    })
  )

  it.effect("passes pages as they are, and never as pages of the control origin", () =>
    Effect.gen(function* () {
      const page = `<a href="/ui/é">é</a>`
      const hostile = [
        ...["Service-Worker-Allowed", "/", "Access-Control-Allow-Origin", "*", "Clear-Site-Data", `"*"`],
        ...["Access-Control-Allow-Credentials", "true", "Set-Cookie", "token=a; Path=/", "X-Frame-Options", "ALLOWALL"],
        ...[
          "Strict-Transport-Security",
          "max-age=9",
          "Alt-Svc",
          `h3=":9"`,
          "Cross-Origin-Resource-Policy",
          "cross-origin"
        ],
        ...["Content-Security-Policy", "frame-ancestors *", "Report-To", "{}", "NEL", "{}", "Refresh", "0; url=/x"],
        ...["Use-As-Dictionary", `match="/*"`, "Link", "</x>; rel=preload", "X-Content-Type-Options", "none"]
      ]
      yield* answering(
        Upstream.answers(
          200,
          ["Content-Type", "text/html; charset=utf-8", "X-Own", "1", "ETag", '"1"', ...hostile],
          page
        )
      )
      const answer = yield* raw("GET", ui)
      assert.strictEqual(answer.body, page)
      const { date: _, ...headers } = Object.fromEntries(answer.headers)
      assert.deepStrictEqual(headers, {
        "cache-control": "no-store",
        connection: "keep-alive",
        "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
        "content-type": "text/html; charset=utf-8",
        etag: '"1"',
        "keep-alive": "timeout=5",
        "transfer-encoding": "chunked",
        "x-content-type-options": "nosniff",
        "x-own": "1",
        "x-request-id": answer.headers.get("x-request-id") ?? ""
      })
    })
  )

  it.effect.each<[location: string, shown: string | null]>([
    ["/ui/?login=1", `${ui}/?login=1`],
    ["https://upstream.test/key/list?a#b", `${ui}/key/list?a#b`],
    ["login", `${ui}/key/login`],
    ["/admin-ui/admin/operator-token/rotate", null],
    ["/admin-ui/upstream-ui/../admin/keys", null],
    ["http://{host}/admin-ui/admin/operator-token/rotate", null],
    ["//{host}/admin-ui/admin/keys", null],
    ["javascript:alert(1)", null],
    ["http://[", null],
    ["https://login.example/authorize?x=1", "https://login.example/authorize?x=1"]
  ])("follows no redirect, and a client that follows %s with its token reaches nothing but the UI", ([link, shown]) =>
    Effect.gen(function* () {
      const host = yield* HttpServer.addressFormattedWith((address) => Effect.succeed(new URL(address).host))
      yield* answering(Upstream.answers(307, ["Location", link.replace("{host}", host), "Set-Cookie", "token=a.b"]))
      const redirected = yield* raw("POST", `${ui}/key/x`)
      assert.deepStrictEqual([redirected.status, redirected.headers.get("location")], [307, shown])
      assert.deepStrictEqual(redirected.headers.getSetCookie(), [])
      assert.lengthOf(sent, 1)
    })
  )

  it.effect.each<Readonly<Record<string, string>>>([
    { "service-worker": "script" },
    { "sec-fetch-dest": "serviceworker" }
  ])("gives no script to a service worker: %j", (headers) =>
    Effect.gen(function* () {
      yield* answering(Upstream.answers(200, ["content-type", "text/javascript"], "self"))
      const refused = yield* call("GET", `${ui}/sw.js`, { headers })
      assert.deepStrictEqual(refusalOf(refused), { status: 403, code: "service_worker_refused", param: null })
      assert.deepStrictEqual(sent, [])
    })
  )

  it.effect("answers without a body stay without: to HEAD, and with 204 and 304", () =>
    Effect.gen(function* () {
      for (const [method, status] of [
        ["HEAD", 200],
        ["GET", 204],
        ["GET", 304]
      ] as const) {
        yield* answering(
          Upstream.answers(status, ["content-type", "text/html", "etag", '"1"', "content-length", "9000000"])
        )
        const answer = yield* raw(method, ui)
        assert.deepStrictEqual([answer.status, answer.headers.get("etag"), answer.body], [status, '"1"', ""])
      }
    })
  )

  it.effect("an answer with a status that is none is the upstream's failure, and not the listener's", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.answers(999, ["content-type", "text/html"], "hello"))
      assert.deepStrictEqual(refusalOf(yield* call("GET", ui)), {
        status: 502,
        code: "upstream_connection",
        param: null
      })
    })
  )

  it.effect.each([
    ["connect", "refused", 502, "upstream_connection"],
    ["headers", "timeout", 504, "upstream_timeout"],
    ["connect", "busy", 502, "upstream_connection"]
  ] as const)("says when the upstream fails: %s %s", ([phase, reason, status, code]) =>
    Effect.gen(function* () {
      yield* answering(Upstream.fails(phase, reason))
      assert.deepStrictEqual(refusalOf(yield* call("GET", ui)), { status, code, param: null })
    })
  )

  it.effect("says when the upstream's credential cannot be used, and asks nothing", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* answering(Upstream.json({}))
      yield* sql`INSERT INTO provider_configs (provider, name, base_url, sealed_credential)
        VALUES ('upstream', 'sealed', 'https://elsewhere.test', 'v1.other.key.x')`
      const refused = yield* call("GET", ui)
      assert.deepStrictEqual(refusalOf(refused), { status: 409, code: "upstream_unconfigured", param: null })
      assert.deepStrictEqual(sent, [])
      yield* sql`DELETE FROM provider_configs`
    })
  )

  it.effect("is at the root of the host of the upstream that serves both families, wherever its API begins", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* answering(Upstream.json({}))
      yield* sql`INSERT INTO provider_configs (provider, name, family, base_url, sealed_credential, credential_origin) VALUES
        ('upstream', 'gpt', 'openai', 'https://gpt.test/v1', 'clear.sk-gpt', 'https://gpt.test'),
        ('upstream', 'proxy', NULL, 'https://proxy.test/api/v1', 'clear.sk-proxy', 'https://proxy.test')`
      yield* ok("GET", `${ui}/keys`)
      const [asked] = sent
      assert.deepStrictEqual([asked?.origin, asked?.target], ["https://proxy.test", "/ui/keys"])
      assert.include(asked?.headers.join("\n"), "Bearer sk-proxy")
      assert.notInclude(asked?.headers.join("\n"), "sk-gpt")
      yield* sql`DELETE FROM provider_configs`
    })
  )

  it.effect("refuses a body that is too large", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const refused = yield* call("POST", ui, {
        text: "x".repeat(16_777_217),
        headers: { "content-type": "text/plain" }
      })
      assert.deepStrictEqual(refusalOf(refused), { status: 413, code: "request_body_too_large", param: null })
      assert.deepStrictEqual(sent, [])
    })
  )
})

/** A browser's session of the active token. */
const session = Effect.gen(function* () {
  const { sql } = yield* Database
  const sessions = yield* UpstreamUiSessions
  const [row] = yield* sql<{ readonly id: string }>`SELECT id FROM operator_tokens WHERE NOT disabled LIMIT 1`
  const { value } = yield* sessions.createCode(row?.id ?? assert.fail("no token"))
  return Redacted.value(Option.getOrThrow(yield* sessions.redeem(Redacted.value(value))))
}).pipe(Effect.provide(UpstreamUiSessions.layer))

/** A request whose answer is seen as it came: no redirect followed, no field folded. */
const raw = (method: string, path: string, { headers = {} }: Pick<Call, "headers"> = {}) =>
  HttpServer.addressFormattedWith((address) =>
    Effect.promise(async () => {
      const response = await fetch(address + path, {
        method,
        redirect: "manual",
        headers: { authorization: `Bearer ${operatorToken}`, ...headers }
      })
      return { status: response.status, headers: response.headers, body: await response.text() }
    })
  )

/** A token of its own, in place of the one that was active. */
const token = Effect.fnUntraced(function* (scopes: ReadonlyArray<Scope>) {
  const { sql } = yield* Database
  const value = Secret.mint(Secret.operatorTokenPrefix)
  yield* sql`UPDATE operator_tokens SET disabled = true, revoked_at = now() WHERE NOT disabled`
  yield* sql`
    INSERT INTO operator_tokens (token_prefix, token_hash, scopes)
    VALUES (${Secret.displayPrefix(value)}, ${Secret.digest(value)}, ${scopes})`
  return Redacted.value(value)
})

/** The token of the tests is the active one again. */
const reinstate = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`UPDATE operator_tokens SET disabled = true, revoked_at = now() WHERE NOT disabled`
  yield* sql`
    UPDATE operator_tokens SET disabled = false, revoked_at = NULL WHERE token_prefix = ${operatorToken.slice(0, 16)}`
})
