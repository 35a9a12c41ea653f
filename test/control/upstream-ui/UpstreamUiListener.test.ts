import { request } from "node:http"
import { gunzipSync, gzipSync } from "node:zlib"
import { assert, layer as describeWith } from "@effect/vitest"
import { DateTime, Deferred, Effect, Option, Redacted } from "effect"
import { HttpServer } from "effect/http"
import * as ControlApp from "../../../src/control/ControlApp.ts"
import { UpstreamUiSessions } from "../../../src/control/upstream-ui/UpstreamUiSessions.ts"
import { Database } from "../../../src/services/Database.ts"
import { Redis } from "../../../src/services/Redis.ts"
import * as Secret from "../../../src/state/Secret.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import * as Upstream from "../../gateway/ScriptedUpstream.ts"
import { admin, at, call, layer, operatorToken, refusalOf, suite } from "../Listener.ts"

const origin = "http://ui.test:8083"
const cookieName = "svc_upstream_ui_session"

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
const listener = (origin: string) =>
  layer(EmbeddedDatabase.layer, { routes: ControlApp.upstreamUi(origin), upstream, vaultKey: Option.none() })

describeWith(listener(origin), options)("The upstream's UI at its own origin", (it) => {
  it.effect("is the upstream from its root on, with the upstream's own credential", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const cookie = yield* session
      for (const path of ["/", "/ui/", "/key/list?x=%2F", "/spend/logs", "/a//b%2Fc;d", "/admin-uix"]) {
        assert.strictEqual((yield* raw("GET", path, { cookie })).status, 200, path)
        assert.strictEqual(sent.at(-1)?.target, path)
      }
      const headers = {
        ...{ cookie, authorization: "Bearer sk-of-the-ui", "x-svc-key": "mine", "x-api-key": "mine" },
        ...{ "x-upstream-key": "mine", "x-custom": "kept", "x-request-id": "ui-1", "sec-fetch-site": "same-origin" }
      }
      yield* raw("POST", "/key/generate", headers, "the body")
      const last = sent.at(-1)
      assert.deepInclude(last, { origin: "https://upstream.test", method: "POST", text: "the body" })
      const fields = new Map(last?.headers.map((name, i) => [name, last.headers[i + 1]]))
      assert.strictEqual(fields.get("authorization"), "Bearer startup-secret")
      assert.strictEqual(fields.get("x-custom"), "kept")
      assert.strictEqual(fields.get("x-svc-request-id"), "ui-1")
      assert.isFalse(last?.headers.some((value) => /mine|sk-of-the-ui|svc_upstream/.test(value)))
    })
  )

  it.effect("opens to a session's cookie alone, and never to an operator token", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const authorization = `Bearer ${operatorToken}`
      for (const headers of [{}, { authorization }, { cookie: `${cookieName}=${"x".repeat(43)}`, authorization }]) {
        for (const path of ["/", "/ui/", "/key/list", "/healthz"]) {
          const refused = yield* raw("GET", path, headers)
          assert.strictEqual(refused.status, 401, path)
          assert.include(refused.body, "invalid_upstream_ui_session")
          assert.include(refused.headers.get("content-security-policy"), "frame-ancestors 'none'")
        }
      }
      const cookie = yield* session
      for (const path of ["/admin-ui/admin/keys", "/admin-ui/docs", "/admin-ui/metrics", "/admin-ui", "/admin-ui?x"]) {
        assert.strictEqual((yield* raw("GET", path, { cookie, authorization })).status, 404, path)
      }
      assert.deepStrictEqual(sent, [])
    })
  )

  it.effect("stays open beside cookies of the same name that a page set for itself", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const [cookie, path] = [yield* session, `/admin-ui/session?code=${yield* newCode}`]
      const own = (value: string) => `${cookieName}=${value}`
      const longer = Array.from({ length: 100 }, (_, i) => own(`${i}`.padStart(43, "x")))
      for (const cookies of [
        [own("x"), cookie],
        [cookie, own("x")],
        [own(""), cookie, own("x".repeat(43)), own("y"), own("z")],
        [...longer, cookie, own("of-the-domain")]
      ]) {
        const header = { cookie: cookies.join("; ") }
        assert.strictEqual((yield* raw("GET", "/ui/", header)).status, 200)
        assert.isFalse(sent.at(-1)?.headers.some((value) => value.includes(cookieName)))
        // the code is used by the first of them
        assert.strictEqual((yield* raw("GET", path, header)).status, 200)
      }
      assert.strictEqual((yield* raw("GET", "/ui/", { cookie: longer.join("; ") })).status, 401)
    })
  )

  it.effect("begins a session with a code, once, and leads to a URL without it", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const code = yield* newCode
      const path = `/admin-ui/session?code=${code}`
      // neither a preview nor a page that loads the link into itself uses it up
      assert.strictEqual((yield* raw("HEAD", path)).status, 404)
      for (const mode of ["no-cors", "navigate"]) {
        const embedded = { "sec-fetch-site": "cross-site", "sec-fetch-mode": mode, "sec-fetch-dest": "iframe" }
        assert.strictEqual((yield* raw("GET", path, embedded)).status, 403)
      }
      const opened = yield* raw("GET", path, {
        ...{ "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }
      })
      assert.strictEqual(opened.status, 200)
      assert.include(opened.body, `content="0; url=/ui/"`)
      assert.strictEqual(opened.headers.get("referrer-policy"), "no-referrer")
      assert.strictEqual(opened.headers.get("cache-control"), "no-store")
      assert.match(opened.headers.get("content-security-policy") ?? "", /default-src 'none'.*frame-ancestors 'none'/)
      const [cookie = "", ...attributes] = (opened.headers.getSetCookie()[0] ?? "").split("; ")
      assert.match(cookie, /^svc_upstream_ui_session=[\w-]{43}$/)
      assert.deepStrictEqual(attributes.sort(), ["HttpOnly", "Max-Age=3600", "Path=/", "SameSite=Strict"])
      assert.strictEqual((yield* raw("GET", "/ui/", { cookie })).status, 200)
      // the same page again leads on with its session, and nobody without it
      assert.strictEqual((yield* raw("GET", path, { cookie })).status, 200)
      const again = yield* raw("GET", path)
      assert.strictEqual(again.status, 401)
      assert.deepStrictEqual(again.headers.getSetCookie(), [])
      assert.isFalse(sent.some(({ target }) => target.includes(code)))
    })
  )

  it.effect("gives one session for a code that many ask with at once, and none for another value", () =>
    Effect.gen(function* () {
      const path = `/admin-ui/session?code=${yield* newCode}`
      const all = yield* Effect.forEach(Array.from({ length: 8 }), () => raw("GET", path), { concurrency: 8 })
      assert.deepStrictEqual(all.map(({ status }) => status).sort(), [200, ...Array.from({ length: 7 }, () => 401)])
      const cookie = yield* session
      for (const code of ["", "x", cookie.split("=")[1] ?? ""]) {
        assert.strictEqual((yield* raw("GET", `/admin-ui/session?code=${code}`)).status, 401)
      }
    })
  )

  it.effect.each<[what: string, headers: Readonly<Record<string, string>>, reads: boolean, changes: boolean]>([
    ["says nothing of where it comes from", {}, true, false],
    ["comes from the same origin", { "sec-fetch-site": "same-origin" }, true, true],
    ["comes from the address bar", { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" }, true, false],
    [
      "comes from another port of this host",
      { "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" },
      false,
      false
    ],
    ["comes from elsewhere", { "sec-fetch-site": "cross-site", origin: "https://portal.example" }, false, false],
    [
      "follows a link",
      { "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
      ...([true, false] as const)
    ],
    [
      "is in another page's frame",
      { "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
      ...([false, false] as const)
    ],
    ["names its own origin", { origin }, true, true],
    ["names another port", { origin: "http://ui.test:8081" }, false, false],
    ["names another scheme", { origin: "https://ui.test:8083" }, false, false],
    ["names none", { origin: "null" }, false, false]
  ])("is read and changed by its own pages: a request that %s", ([, headers, reads, changes]) =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const cookie = yield* session
      for (const [method, allowed] of [
        ["GET", reads],
        ["POST", changes],
        ["PUT", changes],
        ["DELETE", changes]
      ] as const) {
        const answer = yield* raw(method, "/key/x", { cookie, ...headers })
        assert.strictEqual(answer.status, allowed ? 200 : 403, method)
        if (!allowed) assert.include(answer.body, "cross_origin_request")
      }
      assert.lengthOf(sent, (reads ? 1 : 0) + (changes ? 3 : 0))
    })
  )

  it.effect("keeps what an answer says beyond itself from the browser, and adds who may frame it", () =>
    Effect.gen(function* () {
      const hostile = [
        ...[
          "Service-Worker-Allowed",
          "/",
          "Access-Control-Allow-Origin",
          "*",
          "Access-Control-Allow-Credentials",
          "true"
        ],
        ...["Timing-Allow-Origin", "*", "Clear-Site-Data", `"*"`, "X-Frame-Options", "ALLOWALL", "Alt-Svc", `h3=":9"`],
        ...["Strict-Transport-Security", "max-age=9", "Report-To", "{}", "Reporting-Endpoints", "a", "NEL", "{}"],
        ...["Cross-Origin-Opener-Policy", "unsafe-none", "Cross-Origin-Resource-Policy", "cross-origin"],
        ...["WWW-Authenticate", "Basic", "Accept-CH", "UA", "Use-As-Dictionary", `match="/*"`, "Connection", "close"]
      ]
      const kept = [
        "Content-Type",
        "text/html",
        "Content-Security-Policy",
        "script-src 'self'",
        "X-Own",
        "1",
        "Link",
        "</a>"
      ]
      yield* answering(Upstream.answers(200, [...kept, ...hostile], "page"))
      const answer = yield* raw("GET", "/ui/", { cookie: yield* session })
      const { date: _, ...headers } = Object.fromEntries(answer.headers)
      assert.deepStrictEqual(headers, {
        "cache-control": "no-store",
        connection: "close",
        "content-security-policy": "script-src 'self', frame-ancestors 'self'",
        "content-type": "text/html",
        "cross-origin-opener-policy": "same-origin-allow-popups",
        "cross-origin-resource-policy": "same-origin",
        link: "</a>",
        "transfer-encoding": "chunked",
        "x-own": "1",
        "x-request-id": answer.headers.get("x-request-id") ?? ""
      })
    })
  )

  it.effect("sends a header that is named like a member of every object as the upstream sent it", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.answers(200, ["constructor", "one", "Constructor", "two", "toString", "three"], "page"))
      const { headers } = yield* raw("GET", "/ui/", { cookie: yield* session })
      assert.deepStrictEqual([headers.get("constructor"), headers.get("tostring")], ["one, two", "three"])
    })
  )

  it.effect("keeps the upstream's cookies for this host, and sends no other cookie to the upstream", () =>
    Effect.gen(function* () {
      const lines = [
        ...["token=a.b; Path=/; Domain=example.com", "sid=1%20; HttpOnly; Secure; SameSite=Lax; Path=/sso"],
        ...["sid=2; HttpOnly; Path=/ui", `${cookieName}=evil; Path=/`, `__Host-${cookieName}=evil; Secure; Path=/`],
        ...["=nameless; Path=/", "a b=1", `gone=; Max-Age=0${" ".repeat(9_000)}; Path=/`]
      ]
      yield* answering(
        Upstream.answers(
          200,
          lines.flatMap((line) => ["Set-Cookie", line])
        )
      )
      const own = yield* session
      const answer = yield* raw("GET", "/ui/", { cookie: own })
      assert.deepStrictEqual(answer.headers.getSetCookie(), [
        "svc_upstream_cookie.token=a.b; Path=/; HttpOnly",
        "token=a.b; Path=/",
        "svc_upstream_cookie.sid=1%20; Path=/sso; HttpOnly; Secure; SameSite=Lax",
        "svc_upstream_cookie.sid=2; Path=/ui; HttpOnly",
        `svc_upstream_cookie.${cookieName}=evil; Path=/; HttpOnly`,
        `svc_upstream_cookie.__Host-${cookieName}=evil; Path=/; HttpOnly; Secure`,
        "svc_upstream_cookie.gone=; Max-Age=0; Path=/; HttpOnly",
        "gone=; Max-Age=0; Path=/"
      ])
      const cookie = `grafana=secret; ${own}; svc_upstream_cookie.token=a.b; token=a.b; svc_upstream_cookie.sid=1%20`
      yield* raw("GET", "/ui/", { cookie })
      const last = sent.at(-1)?.headers ?? []
      assert.strictEqual(last[last.indexOf("cookie") + 1], "token=a.b; sid=1%20")
      assert.notInclude(last.join(), "grafana")
      yield* raw("GET", "/ui/", { cookie: own })
      assert.notInclude(sent.at(-1)?.headers ?? [], "cookie")
    })
  )

  it.effect("puts its own origin where the upstream quotes its address, and in no other text", () =>
    Effect.gen(function* () {
      const cookie = yield* session
      const login = JSON.stringify({
        redirect_url: "https://upstream.test/ui/",
        other: "see https://upstream.test/ui/"
      })
      yield* answering(Upstream.answers(200, ["content-type", "application/json"], login))
      assert.deepStrictEqual(JSON.parse((yield* raw("GET", "/v2/login", { cookie })).body), {
        redirect_url: `${origin}/ui/`,
        other: "see https://upstream.test/ui/"
      })
      const page = `é"https://upstream.test" 'https://upstream.test/x' "https://upstream.test.evil/" "/ui/"`
      const shown = `é"${origin}" '${origin}/x' "https://upstream.test.evil/" "/ui/"`
      for (const type of ["text/html; charset=utf-8", "application/javascript"]) {
        yield* answering(Upstream.answers(200, ["content-type", type], page.slice(0, 20), page.slice(20)))
        assert.strictEqual((yield* raw("GET", "/ui/", { cookie })).body, shown)
      }
      const zipped = ["content-type", "text/html", "content-encoding", "gzip"]
      for (const [status, headers, bytes] of [
        [200, ["content-type", "text/css"], page],
        [200, ["content-type", "text/event-stream"], page],
        [200, zipped, gzipSync(page)],
        [206, ["content-type", "text/html"], page],
        [200, [], page]
      ] as const) {
        yield* answering(Upstream.answers(status, headers, bytes))
        assert.strictEqual((yield* raw("GET", "/ui/", { cookie })).body, page, headers.join())
      }
      const chunk = page.repeat(10_000)
      yield* answering(Upstream.answers(200, ["content-type", "text/html"], chunk, chunk, chunk, chunk))
      assert.strictEqual((yield* raw("GET", "/ui/", { cookie })).body, chunk.repeat(4))
    })
  )

  it.effect.each([
    ["/ui/?login=1", "/ui/?login=1"],
    ["https://upstream.test", "/"],
    ["https://upstream.test/sso?x", "/sso?x"],
    ["https://upstream.test.evil/x", "https://upstream.test.evil/x"],
    ["https://login.example/authorize", "https://login.example/authorize"]
  ])("leads a redirect to %s to %s", ([location, shown]) =>
    Effect.gen(function* () {
      yield* answering(Upstream.answers(303, ["Location", location ?? ""]))
      const answer = yield* raw("GET", "/x", { cookie: yield* session })
      assert.deepStrictEqual([answer.status, answer.headers.get("location")], [303, shown])
    })
  )

  it.effect("gives no script to a service worker", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.answers(200, ["content-type", "text/javascript"], "self"))
      const headers = { cookie: yield* session, "sec-fetch-site": "same-origin", "service-worker": "script" }
      const refused = yield* raw("GET", "/ui/sw.js", headers)
      assert.strictEqual(refused.status, 403)
      assert.include(refused.body, "service_worker_refused")
      assert.deepStrictEqual(sent, [])
    })
  )

  it.effect("gives up what it asked of the upstream when the browser hangs up", () =>
    Effect.gen(function* () {
      const [asked, givenUp] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      yield* answering(() =>
        Effect.andThen(
          Deferred.succeed(asked, undefined),
          Effect.onInterrupt(Effect.never, () => Deferred.succeed(givenUp, undefined))
        )
      )
      const cookie = yield* session
      const outgoing = yield* HttpServer.addressFormattedWith((address) =>
        Effect.sync(() => request(new URL(address), { path: "/ui/", headers: { cookie }, agent: false }))
      )
      outgoing.on("error", () => {}).end()
      yield* Deferred.await(asked)
      outgoing.destroy()
      yield* Deferred.await(givenUp)
    })
  )

  it.effect("answers a request for a WebSocket as any other, and upgrades nothing", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({ plain: true }))
      const headers = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" }
      const key = { "sec-websocket-key": "MDEyMzQ1Njc4OWFiY2RlZg==" }
      const answer = yield* raw("GET", "/ui/socket", { cookie: yield* session, ...headers, ...key })
      assert.deepStrictEqual([answer.status, answer.body], [200, `{"plain":true}`])
      assert.notInclude(sent[0]?.headers ?? [], "upgrade")
    })
  )

  it.effect("ends with its token, by revocation or a lost scope, and after an hour", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const redis = yield* Redis
      yield* answering(Upstream.json({}))
      const cookie = yield* session
      const status = Effect.map(raw("GET", "/ui/", { cookie }), (answer) => answer.status)
      assert.strictEqual(yield* status, 200)
      yield* sql`UPDATE operator_tokens SET scopes = '{usage:read}'`
      assert.strictEqual(yield* status, 403)
      yield* sql`UPDATE operator_tokens SET scopes = '{*}', expires_at = now()`
      assert.strictEqual(yield* status, 401)
      yield* sql`UPDATE operator_tokens SET expires_at = NULL, revoked_at = now()`
      assert.strictEqual(yield* status, 401)
      yield* sql`UPDATE operator_tokens SET revoked_at = NULL`
      assert.strictEqual(yield* status, 200)
      const key = redis.key(`upstream-ui:session:${Secret.digestHex(cookie.split("=")[1] ?? "")}`)
      const left = Number(yield* redis.command("TTL", key))
      assert.isTrue(left > 3500 && left <= 3600)
      yield* redis.command("DEL", key)
      assert.strictEqual(yield* status, 401)
    })
  )

  it.effect("is known to Redis by digests alone, and there are a thousand sessions and codes at most", () =>
    Effect.gen(function* () {
      const redis = yield* Redis
      const sessions = yield* UpstreamUiSessions
      const code = yield* newCode
      const cookie = yield* session
      const keys = JSON.stringify(yield* redis.command("LRANGE", redis.key("upstream-ui:codes"), 0, -1))
      assert.include(keys, Secret.digestHex(code))
      assert.notInclude(keys, code)
      const ttl = Number(yield* redis.command("TTL", redis.key(`upstream-ui:code:${Secret.digestHex(code)}`)))
      assert.isTrue(ttl > 50 && ttl <= 60)
      yield* Effect.forEach(
        Array.from({ length: 1000 }),
        () =>
          Effect.flatMap(sessions.createCode("00000000-0000-4000-8000-000000000000"), ({ value }) =>
            sessions.redeem(Redacted.value(value))
          ),
        { discard: true }
      )
      for (const kind of ["codes", "sessions"]) {
        assert.strictEqual(yield* redis.command("LLEN", redis.key(`upstream-ui:${kind}`)), 1000)
      }
      assert.strictEqual((yield* raw("GET", `/admin-ui/session?code=${code}`)).status, 401)
      assert.strictEqual((yield* raw("GET", "/ui/", { cookie })).status, 401)
      const known = JSON.stringify(yield* redis.command("LRANGE", redis.key("upstream-ui:sessions"), 0, -1))
      assert.notInclude(known, cookie.split("=")[1] ?? "")
    }).pipe(Effect.provide(UpstreamUiSessions.layer))
  )
})

describeWith(listener("https://ui.example"), options)("The upstream's UI at an https origin", (it) => {
  it.effect("has a cookie for this host and TLS alone, and takes no other", () =>
    Effect.gen(function* () {
      yield* answering(Upstream.json({}))
      const opened = yield* raw("GET", `/admin-ui/session?code=${yield* newCode}`)
      const [cookie = "", ...attributes] = (opened.headers.getSetCookie()[0] ?? "").split("; ")
      assert.match(cookie, /^__Host-svc_upstream_ui_session=[\w-]{43}$/)
      assert.deepStrictEqual(attributes.sort(), ["HttpOnly", "Max-Age=3600", "Path=/", "SameSite=Strict", "Secure"])
      assert.strictEqual((yield* raw("GET", "/ui/", { cookie })).status, 200)
      assert.strictEqual((yield* raw("GET", "/ui/", { cookie: cookie.replace("__Host-", "") })).status, 401)
    })
  )
})

suite("The link to the upstream's UI", (it) => {
  it.effect("is refused while there is no listener for it, and says which variable opens one", () =>
    Effect.gen(function* () {
      const answer = yield* call("POST", `${admin}/upstream-ui/session`)
      assert.deepStrictEqual(refusalOf(answer), { status: 409, code: "upstream_ui_unconfigured", param: null })
      assert.include(answer.text, "GATEWAY_UPSTREAM_UI_BIND_ADDR")
    })
  )
})

describeWith(layer(EmbeddedDatabase.layer, { upstreamUiOrigin: origin }), options)(
  "The link to the upstream's UI, with a listener",
  (it) => {
    it.effect("has a code that begins a session of the calling token", () =>
      Effect.gen(function* () {
        const answer = yield* call("POST", `${admin}/upstream-ui/session`)
        assert.strictEqual(answer.status, 200)
        const url = new URL(String(at(answer.json, "url")))
        assert.strictEqual(url.origin + url.pathname, `${origin}/admin-ui/session`)
        const expires = DateTime.makeUnsafe(String(at(answer.json, "expires_at")))
        const left = DateTime.toEpochMillis(expires) - DateTime.toEpochMillis(yield* DateTime.now)
        assert.isTrue(left > 0 && left <= 60_000)
        const sessions = yield* UpstreamUiSessions
        const id = yield* sessions.redeem(url.searchParams.get("code") ?? "")
        const session = yield* sessions.find(Redacted.value(Option.getOrThrow(id)))
        const { sql } = yield* Database
        const [row] = yield* sql<{ readonly id: string }>`SELECT id FROM operator_tokens`
        assert.deepStrictEqual(Option.getOrThrow(session), { tokenId: row?.id ?? "", scopes: ["*"] })
        const events =
          yield* sql`SELECT actor_token_id, target_type, target_id, before_json, after_json FROM audit_events
          WHERE action = 'providers:upstream_ui_open'`
        // who and when, and nothing that opens it
        assert.deepStrictEqual(events, [
          {
            ...{ actor_token_id: row?.id, target_type: "upstream_ui", target_id: origin, before_json: null },
            after_json: { expires_at: String(at(answer.json, "expires_at")) }
          }
        ])
      }).pipe(Effect.provide(UpstreamUiSessions.layer))
    )
  }
)

/** A code of the token that is there. */
const newCode = Effect.gen(function* () {
  const { sql } = yield* Database
  const [row] = yield* sql<{ readonly id: string }>`SELECT id FROM operator_tokens`
  const { value } = yield* (yield* UpstreamUiSessions).createCode(row?.id ?? assert.fail("no token"))
  return Redacted.value(value)
}).pipe(Effect.provide(UpstreamUiSessions.layer))

/** A session's cookie. */
const session = Effect.flatMap(newCode, (code) =>
  Effect.map(
    raw("GET", `/admin-ui/session?code=${code}`),
    ({ headers }) => headers.getSetCookie()[0]?.split(";")[0] ?? ""
  )
)

/** A request with these headers and no other, as a browser might send them; no redirect is followed. */
function raw(method: string, path: string, headers: Readonly<Record<string, string>> = {}, body = "") {
  return HttpServer.addressFormattedWith((address) =>
    Effect.callback<{ readonly status: number; readonly headers: Headers; readonly body: string }>((resume) => {
      const outgoing = request(new URL(address), { method, path, headers, agent: false }, (incoming) => {
        const chunks: Array<Buffer> = []
        incoming.on("data", (chunk) => chunks.push(chunk))
        incoming.on("end", () => {
          const { rawHeaders, statusCode = 0 } = incoming
          const fields = rawHeaders.flatMap(
            (name, i): Array<[string, string]> => (i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? ""]] : [])
          )
          const bytes = Buffer.concat(chunks)
          const body = incoming.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes
          resume(Effect.succeed({ status: statusCode, headers: new Headers(fields), body: body.toString() }))
        })
      })
      outgoing.on("error", (cause) => resume(Effect.die(cause)))
      outgoing.end(body)
    })
  )
}
