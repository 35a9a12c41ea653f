import { gzipSync } from "node:zlib"
import { assert, layer as describeWith } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { HttpServer } from "effect/http"
import * as DatabaseEmbedded from "../../layers/DatabaseEmbedded.ts"
import type { Scope } from "../../src/control/api/Security.ts"
import { UpstreamUiSessions } from "../../src/control/UpstreamUiSessions.ts"
import * as Secret from "../../src/gateway/model/Secret.ts"
import { Database } from "../../src/services/Database.ts"
import { Redis } from "../../src/services/Redis.ts"
import * as Upstream from "../gateway/ScriptedUpstream.ts"
import { admin, at, type Call, call, layer, ok, operatorToken, refusalOf } from "./Listener.ts"

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

const html = (body: string) => Upstream.answers(200, ["Content-Type", "text/html; charset=utf-8"], body)

const options = { excludeTestServices: true } as const

/** Credentials are stored as they are, so that a test can store one. */
const listener = layer(DatabaseEmbedded.layer, { vaultKey: Option.none(), upstream })

describeWith(listener, options)("The upstream's UI", (it) => {
  it.effect("is for operators alone, at the prefix and at every root name, whatever ui_exposure says", () =>
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
        "/key/list",
        "/v1/agents",
        "/get_image",
        "/models",
        "/user/info",
        "/sso/x"
      ]
      for (const path of paths) {
        for (const method of ["GET", "POST", "DELETE"] as const) {
          for (const [authorization, status, code] of refusals) {
            const answer = yield* call(method, path, { authorization, ...(method === "POST" && { text: "{" }) })
            assert.deepStrictEqual(refusalOf(answer), { status, code, param: null }, `${method} ${path}`)
          }
          const cookie = `svc_upstream_ui_session=${"x".repeat(43)}`
          const unknown = yield* call(method, path, { authorization: null, headers: { cookie } })
          assert.strictEqual(unknown.status, 401)
        }
      }
      assert.deepStrictEqual(sent, [])
      yield* reinstate
      for (const path of paths) {
        assert.strictEqual((yield* call("GET", path)).status, 200, path)
      }
      assert.deepStrictEqual(
        sent.map(({ target }) => target),
        ["/ui", "/ui/", "/ui/keys", ...paths.slice(3)]
      )
    })
  )

  it.effect("leaves generation routes and unknown names where they are: nowhere", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      for (const path of ["/v1/chat/completions", "/v1/models", "/healthz", "/admin/keys", "/spend/logs", `${ui}x`]) {
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

  it.effect("shows pages, scripts and JSON with their links below the prefix, and follows no redirect", () =>
    Effect.gen(function* () {
      yield* answering(html(`<a href="/ui/é">é</a>`))
      const page = yield* call("GET", ui)
      assert.strictEqual(page.text, `<a href="${ui}/é">é</a>`)
      assert.include(page.headers["content-type"], "text/html")
      yield* answering(
        Upstream.answers(200, ["content-type", "application/javascript"], `fetch("/upstream-asset-`, `prefix/x")`)
      )
      assert.strictEqual((yield* call("GET", "/get/x.js")).text, `fetch("${ui}/upstream-asset-prefix/x")`)
      yield* answering(Upstream.json({ redirect_url: "https://upstream.test/ui/" }))
      assert.deepStrictEqual((yield* call("POST", "/v2/login", { body: {} })).json, { redirect_url: `${ui}/` })
      yield* answering(
        Upstream.answers(303, [
          "Location",
          "/ui/?login=1",
          "Set-Cookie",
          "token=a.b; Path=/",
          "Set-Cookie",
          "other=1; HttpOnly"
        ])
      )
      const redirected = yield* raw("GET", `${ui}/login`)
      assert.deepStrictEqual([redirected.status, redirected.headers.get("location")], [303, `${ui}/?login=1`])
      assert.lengthOf(sent, 1)
      const cookies = redirected.headers.getSetCookie().join("\n")
      assert.match(cookies, /^token=a\.b; Path=\/$/m)
      assert.match(cookies, /^other=1; HttpOnly$/m)
    })
  )

  it.effect("leaves alone what is encoded, partial, of another kind, or too long", () =>
    Effect.gen(function* () {
      const link = `"/ui/x"`
      const zipped = ["content-type", "text/html", "content-encoding", "gzip"]
      for (const [headers, bytes] of [
        [["content-type", "text/css"], link],
        [zipped, gzipSync(link)],
        [[], link]
      ] as const) {
        yield* answering(Upstream.answers(200, headers, bytes))
        assert.strictEqual((yield* raw("GET", ui)).body, link, headers.join())
      }
      yield* answering(Upstream.answers(206, ["content-type", "text/html"], link))
      assert.strictEqual((yield* call("GET", ui)).text, link)
      const chunk = link.repeat(100_000)
      yield* answering(Upstream.answers(200, ["content-type", "text/html"], chunk, chunk, chunk, chunk))
      const long = yield* call("GET", ui)
      assert.strictEqual(long.text, chunk.repeat(4))
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

describeWith(listener, options)("A session of the upstream's UI", (it) => {
  it.effect("begins with a call that has the token, opens the UI without it, and nothing else", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const { attributes, cookie } = yield* begin({})
      assert.deepStrictEqual(attributes, ["Max-Age=3600", "Path=/", "HttpOnly", "SameSite=Strict"].sort())
      assert.match(cookie, /^svc_upstream_ui_session=[\w-]{43}$/)
      assert.notInclude(cookie, operatorToken.slice(8))
      const opened = yield* call("GET", "/key/list", { authorization: null, headers: { cookie } })
      assert.strictEqual(opened.status, 200)
      assert.isUndefined(opened.headers["set-cookie"])
      assert.isFalse(sent.at(-1)?.headers.some((value) => value.includes("svc_upstream_ui_session")))
      const keys = yield* call("GET", `${admin}/keys`, { authorization: null, headers: { cookie } })
      assert.strictEqual(keys.status, 401)
    })
  )

  it.effect("is for TLS alone when the operator came by TLS", () =>
    Effect.gen(function* () {
      const { attributes } = yield* begin({ "x-forwarded-proto": "https" })
      assert.include(attributes, "Secure")
    })
  )

  it.effect("is one session, however often the same browser shows its token", () =>
    Effect.gen(function* () {
      const { cookie } = yield* begin({})
      assert.isUndefined((yield* call("GET", ui, { headers: { cookie } })).headers["set-cookie"])
    })
  )

  it.effect("goes on while the UI's scripts send an Authorization of their own", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const { cookie } = yield* begin({})
      const answer = yield* call("GET", "/key/list", { authorization: "Bearer sk-of-the-ui", headers: { cookie } })
      assert.strictEqual(answer.status, 200)
      assert.include(sent.at(-1)?.headers ?? [], "Bearer startup-secret")
      assert.notInclude(sent.at(-1)?.headers ?? [], "Bearer sk-of-the-ui")
      const wrong = `Bearer ${Redacted.value(Secret.mint(Secret.operatorTokenPrefix))}`
      assert.strictEqual((yield* call("GET", "/key/list", { authorization: wrong, headers: { cookie } })).status, 401)
    })
  )

  it.effect.each<[what: string, headers: Readonly<Record<string, string>>, allowed: boolean]>([
    ["says nothing of where it comes from", {}, false],
    ["comes from the same origin", { "sec-fetch-site": "same-origin" }, true],
    ["comes from a sister host", { "sec-fetch-site": "same-site" }, false],
    ["comes from elsewhere", { "sec-fetch-site": "cross-site", origin: "https://portal.example" }, false],
    ["names its own origin", { origin: "https://portal.example", "x-forwarded-host": "portal.example" }, true],
    ["names another", { origin: "https://evil.example", "x-forwarded-host": "portal.example" }, false],
    [
      "names its own host by another scheme",
      { origin: "http://portal.example", "x-forwarded-host": "portal.example", "x-forwarded-proto": "https" },
      false
    ],
    ["names none", { origin: "null" }, false]
  ])("lets a change through only from the UI's own pages: one that %s", ([, headers, allowed]) =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const { cookie } = yield* begin({})
      sent.length = 0
      for (const method of ["POST", "PUT", "PATCH", "DELETE"] as const) {
        const answer = yield* call(method, "/key/x", { authorization: null, headers: { cookie, ...headers } })
        if (allowed) assert.strictEqual(answer.status, 200)
        else assert.deepStrictEqual(refusalOf(answer), { status: 403, code: "cross_origin_request", param: null })
      }
      assert.lengthOf(sent, allowed ? 4 : 0)
      const read = yield* call("GET", "/key/x", { authorization: null, headers: { cookie, ...headers } })
      assert.strictEqual(read.status, 200)
      const withToken = yield* call("POST", "/key/x", { headers: { cookie, ...headers } })
      assert.strictEqual(withToken.status, 200)
    })
  )

  it.effect("ends with its token, by rotation or a lost scope, and after an hour", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const redis = yield* Redis
      const { cookie } = yield* begin({})
      const statusOf = (path: string) =>
        Effect.map(call("GET", path, { authorization: null, headers: { cookie } }), ({ status }) => status)
      assert.strictEqual(yield* statusOf(ui), 200)
      yield* sql`UPDATE operator_tokens SET scopes = '{usage:read}' WHERE NOT disabled`
      assert.strictEqual(yield* statusOf(ui), 403)
      yield* sql`UPDATE operator_tokens SET scopes = '{*}' WHERE NOT disabled`
      assert.strictEqual(yield* statusOf(ui), 200)
      const digest = Secret.digestHex(cookie.split("=")[1] ?? "")
      const key = redis.key(`upstream-ui:session:${digest}`)
      const left = Number(yield* redis.command("TTL", key))
      assert.isTrue(left > 3500 && left <= 3600)
      yield* ok("POST", `${admin}/operator-token/rotate`)
      assert.strictEqual(yield* statusOf(ui), 401)
      yield* reinstate
      assert.strictEqual(yield* statusOf(ui), 200)
      yield* redis.command("DEL", key)
      assert.strictEqual(yield* statusOf(ui), 401)
    })
  )

  it.effect("is known to Redis by its digest alone, and there are a thousand at most", () =>
    Effect.gen(function* () {
      const redis = yield* Redis
      const sessions = yield* UpstreamUiSessions
      const { cookie } = yield* begin({})
      const statusOf = Effect.map(call("GET", ui, { authorization: null, headers: { cookie } }), ({ status }) => status)
      assert.strictEqual(yield* statusOf, 200)
      yield* Effect.forEach(
        Array.from({ length: 1000 }),
        () => sessions.begin("00000000-0000-4000-8000-000000000000"),
        {
          discard: true
        }
      )
      assert.strictEqual(yield* redis.command("LLEN", redis.key("upstream-ui:sessions")), 1000)
      assert.strictEqual(yield* statusOf, 401)
      const known = yield* redis.command("LRANGE", redis.key("upstream-ui:sessions"), 0, -1)
      assert.notInclude(JSON.stringify(known), cookie.split("=")[1] ?? "")
    }).pipe(Effect.provide(UpstreamUiSessions.layer))
  )
})

/** A session by a call with the operator's token. */
const begin = Effect.fnUntraced(function* (headers: Readonly<Record<string, string>>) {
  const { headers: answered } = yield* raw("GET", ui, { headers })
  const [cookie = "", ...attributes] = (answered.getSetCookie().find((one) => one.startsWith("svc_")) ?? "").split("; ")
  return { cookie, attributes: attributes.sort() }
})

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
    VALUES (${Secret.shown(value)}, ${Secret.digest(value)}, ${scopes})`
  return Redacted.value(value)
})

/** The token of the tests is the active one again. */
const reinstate = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`UPDATE operator_tokens SET disabled = true, revoked_at = now() WHERE NOT disabled`
  yield* sql`
    UPDATE operator_tokens SET disabled = false, revoked_at = NULL WHERE token_prefix = ${operatorToken.slice(0, 16)}`
})
