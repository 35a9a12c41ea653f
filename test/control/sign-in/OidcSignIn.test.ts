import { assert, layer as describeWith } from "@effect/vitest"
import { DateTime, Effect, Layer, Option, Redacted, Schema } from "effect"
import { HttpServer } from "effect/http"
import { ControlOrigin } from "../../../src/control/session/ControlOrigin.ts"
import { StartupOidcClient } from "../../../src/control/sign-in/OidcClient.ts"
import * as PendingSignIn from "../../../src/control/sign-in/PendingSignIn.ts"
import { Database } from "../../../src/services/Database.ts"
import { Vault } from "../../../src/state/Vault.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import * as Issuer from "../../gateway/Issuer.ts"
import { admin, at, call, layer, ok } from "../Listener.ts"
import * as OidcIssuer from "./OidcIssuer.ts"

const start = "/admin-ui/session/oidc"
const callback = `${start}/callback`
const origin = "https://control.example"

const secret = Redacted.make(OidcIssuer.client.secret)

const configured = Layer.mergeAll(
  Layer.succeed(ControlOrigin, Option.some(origin)),
  Layer.succeed(
    StartupOidcClient,
    Option.some({
      id: OidcIssuer.client.id,
      secret,
      groupsClaim: "groups",
      scopesOfGroups: [
        { group: "readers", scopes: ["usage:read", "keys:create"] },
        { group: "cn=admins,dc=example", scopes: ["*"] }
      ],
      requestedScopes: ["profile"]
    })
  )
)

const parse = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Json))

/** A browser: it keeps cookies, and follows no redirect by itself. */
const newBrowser = Effect.map(HttpServer.addressFormattedWith(Effect.succeed), (base) => {
  const { port } = new URL(base)
  const cookies = new Map<string, string>()
  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    Effect.promise(async () => {
      const cookie = [...cookies].map((pair) => pair.join("=")).join("; ")
      const url = new URL(path, `http://127.0.0.1:${port}`)
      const response = await fetch(url, {
        redirect: "manual",
        headers: { connection: "close", ...headers, ...(cookie !== "" && { cookie }) }
      })
      const set = response.headers.getSetCookie()
      for (const line of set) {
        const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (line.includes("Max-Age=0")) cookies.delete(name)
        else cookies.set(name, value)
      }
      const text = await response.text()
      const json = text.startsWith("{") ? parse(text) : null
      return { status: response.status, location: response.headers.get("location") ?? "", set, text, json }
    })
  return { cookies, get }
})

type Browser = Effect.Success<typeof newBrowser>

const begin = (browser: Browser, returnTo = "/admin-ui/keys?tab=1#top") =>
  Effect.map(browser.get(`${start}?return_to=${encodeURIComponent(returnTo)}`), (answer) => {
    assert.strictEqual(answer.status, 303, answer.text)
    return new URL(answer.location)
  })

/** The path to which the issuer sends the browser back. */
const atIssuer = (url: URL) =>
  Effect.promise(async () => {
    const response = await fetch(url, { redirect: "manual", headers: { connection: "close" } })
    const back = new URL(response.headers.get("location") ?? "")
    assert.strictEqual(back.origin, origin)
    return back.pathname + back.search
  })

const signIn = Effect.fnUntraced(function* (browser: Browser) {
  return yield* browser.get(yield* atIssuer(yield* begin(browser)))
})

const codeOf = ({ json, status }: Effect.Success<ReturnType<Browser["get"]>>) => [status, at(json, "error", "code")]

const patch = (body: object) => ok("PATCH", `${admin}/auth/front-door`, { body })

const useIssuer = Effect.tap(OidcIssuer.serve, ({ discoveryUrl, issuer }) =>
  patch({ issuer, oidc_discovery_url: discoveryUrl, tenant_id: null })
)

const sessions = Effect.flatMap(
  Database,
  ({ sql }) => sql<{ readonly n: number }>`SELECT count(*)::int AS n FROM operator_sessions`
)

const pageOf = (browser: Browser) =>
  Effect.map(browser.get("/admin-ui/session", { "sec-fetch-site": "same-origin" }), ({ json, status, text }) => {
    assert.strictEqual(status, 200, text)
    const cookie = [...browser.cookies].map((pair) => pair.join("=")).join("; ")
    return {
      json,
      headers: { cookie, "sec-fetch-site": "same-origin", "x-svc-csrf": String(at(json, "csrf", "value")) }
    }
  })

describeWith(layer(EmbeddedDatabase.layer).pipe(Layer.provide(configured)), { excludeTestServices: true })(
  "Signing in at an identity provider",
  (it) => {
    it.effect("opens what the person's groups open, and names the person in the audit log", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* useIssuer
        const browser = yield* newBrowser
        const url = yield* begin(browser)
        const { code_challenge, nonce, state, ...rest } = Object.fromEntries(url.searchParams)
        assert.deepStrictEqual(rest, {
          tenant: "blue",
          response_type: "code",
          client_id: OidcIssuer.client.id,
          redirect_uri: origin + callback,
          scope: "openid profile",
          code_challenge_method: "S256"
        })
        for (const value of [code_challenge, nonce, state]) assert.match(value ?? "", /^[\w-]{43}$/)
        const back = yield* browser.get(yield* atIssuer(url))
        assert.deepStrictEqual([back.status, back.location], [303, "/admin-ui/keys?tab=1#top"], back.text)
        const [cleared = "", session = ""] = back.set
        assert.match(cleared, /^__Host-svc_sign_in=; Max-Age=0; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
        assert.match(
          session,
          /^__Host-svc_session=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; Secure; SameSite=Strict$/
        )

        const page = yield* pageOf(browser)
        assert.deepInclude(page.json, { name: "oidc:ada", scopes: ["usage:read", "keys:create"] })
        const made = yield* call("POST", `${admin}/keys`, {
          authorization: null,
          headers: page.headers,
          body: { name: "by ada", owner_type: "individual" }
        })
        assert.strictEqual(made.status, 200, made.text)
        const events = yield* sql`SELECT e.action, t.name, e.after_json->>'subject' AS subject FROM audit_events e
          JOIN operator_tokens t ON t.id = e.actor_token_id WHERE t.name = 'oidc:ada' ORDER BY e.sequence`
        assert.deepStrictEqual(events, [
          { action: "sessions:sign_in", name: "oidc:ada", subject: "ada" },
          { action: "keys:create", name: "oidc:ada", subject: null }
        ])
        const out = yield* call("DELETE", "/admin-ui/session", { authorization: null, headers: page.headers })
        assert.strictEqual(out.status, 204)
        assert.strictEqual((yield* browser.get("/admin-ui/session", { "sec-fetch-site": "same-origin" })).status, 401)
      })
    )

    it.effect("ends after a day whatever happens, with the person's row, and gives nobody a token", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* useIssuer
        const [first, second] = [yield* newBrowser, yield* newBrowser]
        yield* signIn(first)
        yield* signIn(second)
        const rows = yield* sql<{ readonly id: string; readonly hours: number }>`
          SELECT t.id, extract(epoch FROM s.ends_at - s.created_at)::int / 3600 AS hours FROM operator_sessions s
          JOIN operator_tokens t ON t.id = s.token_id WHERE t.name = 'oidc:ada'`
        assert.deepStrictEqual([...new Set(rows.map(({ hours }) => hours))], [24])
        const id = rows[0]?.id ?? ""
        assert.isTrue(rows.every((row) => row.id === id))
        yield* sql`UPDATE operator_sessions SET used_at = now() - interval '2 hours', ends_at = now() + interval '1 hour'`
        const { json } = yield* pageOf(first)
        assert.isBelow(Date.parse(String(at(json, "expires_at"))) - Date.now(), 3_600_001)
        const extended =
          yield* sql`SELECT 1 FROM operator_sessions WHERE expires_at > ends_at AND used_at > now() - interval '1 minute'`
        assert.lengthOf(extended, 0)
        yield* sql`UPDATE operator_sessions SET ends_at = now(), expires_at = now() + interval '1 hour' WHERE used_at > now() - interval '1 minute'`
        assert.strictEqual((yield* first.get("/admin-ui/session", { "sec-fetch-site": "same-origin" })).status, 401)
        yield* pageOf(second)
        const rotated = yield* call("POST", `${admin}/operator-tokens/${id}/rotate`)
        assert.strictEqual(rotated.status, 409, rotated.text)
        yield* ok("POST", `${admin}/operator-tokens/${id}/revoke`)
        assert.strictEqual((yield* second.get("/admin-ui/session", { "sec-fetch-site": "same-origin" })).status, 401)
        const again = yield* newBrowser
        assert.strictEqual((yield* signIn(again)).status, 303)
        yield* pageOf(again)
      })
    )

    it.effect("takes a state once, and only from the browser that it was given to", () =>
      Effect.gen(function* () {
        const issuer = yield* useIssuer
        const browser = yield* newBrowser
        const url = yield* begin(browser)
        const kept = new Map(browser.cookies)
        const before = yield* sessions
        const stranger = yield* newBrowser
        yield* begin(stranger)
        const back = yield* atIssuer(url)
        for (const other of [yield* newBrowser, stranger]) {
          assert.deepStrictEqual(codeOf(yield* other.get(back)), [400, "invalid_sign_in"])
        }
        const forged = yield* newBrowser
        for (const [name, value] of kept) {
          const [payload = "", signature = ""] = value.split(".")
          const pending = Buffer.from(payload, "base64url").toString("utf8").replace("/admin-ui/keys", "/admin-ui/evil")
          forged.cookies.set(name, `${Buffer.from(pending).toString("base64url")}.${signature}`)
        }
        assert.deepStrictEqual(codeOf(yield* forged.get(back)), [400, "invalid_sign_in"])
        assert.strictEqual(issuer.exchanges, 0)
        assert.deepStrictEqual(yield* sessions, before)

        assert.strictEqual((yield* browser.get(back)).status, 303)
        for (const [name, value] of kept) browser.cookies.set(name, value)
        const replayed = yield* browser.get(yield* atIssuer(url))
        assert.deepStrictEqual(codeOf(replayed), [400, "invalid_sign_in"])
        assert.include(replayed.text, "has been used")
        assert.strictEqual(issuer.exchanges, 1)
      })
    )

    it.effect("takes a state once also when it comes twice at the same time", () =>
      Effect.gen(function* () {
        yield* useIssuer
        const [one, other] = [yield* newBrowser, yield* newBrowser]
        const url = yield* begin(one)
        for (const [name, value] of one.cookies) other.cookies.set(name, value)
        const [first, second] = [yield* atIssuer(url), yield* atIssuer(url)]
        const [{ n: before } = { n: 0 }] = yield* sessions
        const answers = yield* Effect.all([one.get(first), other.get(second)], { concurrency: 2 })
        assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [303, 400])
        assert.deepStrictEqual(yield* sessions, [{ n: before + 1 }])
      })
    )

    it.effect("a sign-in that took too long begins anew", () =>
      Effect.gen(function* () {
        yield* useIssuer
        const key = (yield* Vault).derive(Buffer.from(Redacted.value(secret)), "browser sign-in")
        const old = PendingSignIn.begin("/admin-ui/", DateTime.subtract(yield* DateTime.now, { minutes: 11 }))
        const browser = yield* newBrowser
        browser.cookies.set("__Host-svc_sign_in", PendingSignIn.toCookie(key, old))
        const late = yield* browser.get(`${callback}?code=x&state=${old.state}`)
        assert.deepStrictEqual(codeOf(late), [400, "invalid_sign_in"])
        assert.include(late.text, "ten minutes")
      })
    )

    it.effect("refuses tokens that are not for this sign-in, and people in no group, with nothing half-done", () =>
      Effect.gen(function* () {
        const issuer = yield* useIssuer
        const before = yield* sessions
        const refused = Effect.fnUntraced(function* (claims: Readonly<Record<string, unknown>>) {
          issuer.claims = claims
          const browser = yield* newBrowser
          const answer = yield* signIn(browser)
          assert.strictEqual(browser.cookies.size, 0)
          assert.notInclude(answer.text, "canary")
          return codeOf(answer)
        })
        const past = Date.now() / 1000 - 3600
        for (const claims of [
          { nonce: "another" },
          { nonce: undefined },
          { aud: "another client" },
          { aud: [OidcIssuer.client.id, "another"], azp: "another" },
          { exp: past },
          { iss: "https://issuer.evil" },
          { nbf: Date.now() / 1000 + 3600 },
          { sub: undefined },
          { sub: "a\nb" }
        ]) {
          assert.deepStrictEqual(yield* refused(claims), [403, "invalid_identity_token"], JSON.stringify(claims))
        }
        const own = issuer.signer
        issuer.signer = yield* Issuer.signingKey(own.kid)
        assert.deepStrictEqual(yield* refused({}), [403, "invalid_identity_token"])
        issuer.signer = own
        for (const claims of [
          { groups: ["staff"] },
          { groups: undefined },
          { groups: ["readers"], hasgroups: true },
          { groups: ["readers"], _claim_names: { groups: "src1" } }
        ]) {
          assert.deepStrictEqual(yield* refused(claims), [403, "sign_in_refused"], JSON.stringify(claims))
        }
        yield* patch({ tenant_id: "tenant-1" })
        assert.deepStrictEqual(yield* refused({ tid: "tenant-2" }), [403, "invalid_identity_token"])
        assert.deepStrictEqual(yield* sessions, before)
      })
    )

    it.effect("says when the person or the provider says no, or the provider is not there", () =>
      Effect.gen(function* () {
        const issuer = yield* useIssuer
        const browser = yield* newBrowser
        const state = Effect.map(begin(browser), ({ searchParams }) => searchParams.get("state") ?? "")
        const denied = yield* browser.get(
          `${callback}?error=access_denied&error_description=canary&state=${yield* state}`
        )
        assert.deepStrictEqual(codeOf(denied), [403, "sign_in_refused"])
        assert.include(denied.text, "access_denied")
        assert.notInclude(denied.text, "canary")
        const without = yield* browser.get(`${callback}?state=${yield* state}`)
        assert.deepStrictEqual(codeOf(without), [400, "invalid_sign_in"])
        const mixedUp = yield* browser.get(`${callback}?code=x&iss=https://issuer.evil&state=${yield* state}`)
        assert.deepStrictEqual(codeOf(mixedUp), [400, "invalid_sign_in"])
        const unknown = yield* browser.get(`${callback}?code=unknown&state=${yield* state}`)
        assert.deepStrictEqual(codeOf(unknown), [400, "invalid_sign_in"])
        assert.notInclude(unknown.text, "canary")
        yield* patch({ oidc_discovery_url: "http://127.0.0.1:9/.well-known/openid-configuration" })
        assert.deepStrictEqual(codeOf(yield* browser.get(start)), [502, "identity_provider_unavailable"])
        yield* patch({ issuer: "https://another.example", oidc_discovery_url: issuer.discoveryUrl })
        assert.deepStrictEqual(codeOf(yield* browser.get(start)), [502, "identity_provider_unavailable"])
        yield* patch({ issuer: null })
        for (const path of [start, callback]) {
          const absent = yield* browser.get(path)
          assert.deepStrictEqual(codeOf(absent), [404, "not_found"])
          assert.include(absent.text, "IDENTITY_ISSUER")
        }
      })
    )

    it.effect("redirects to local paths below /admin-ui alone", () =>
      Effect.gen(function* () {
        yield* useIssuer
        const browser = yield* newBrowser
        for (const path of [
          "//evil.example",
          "/\\evil.example",
          "https://evil.example/admin-ui/",
          "javascript:alert(1)",
          "/",
          "/admin-uievil",
          "/admin-ui/../evil",
          "/admin-ui/%2e%2e/evil",
          "/admin-ui/..\\evil",
          "/admin-ui/%2F%2Fevil.example",
          "/admin-ui/%5cevil.example",
          "/admin-ui/%252fevil",
          "/admin-ui/\r\nset-cookie: a=b",
          "/admin-ui/%0d%0aset-cookie:a=b",
          "/admin-ui/\tx",
          "\t//evil.example",
          "/admin-ui/session/oidc",
          "",
          `/admin-ui/${"a".repeat(1100)}`
        ]) {
          const answer = yield* browser.get(`${start}?return_to=${encodeURIComponent(path)}`)
          assert.deepStrictEqual(codeOf(answer), [422, "invalid_request"], path)
          assert.deepStrictEqual(answer.set, [])
        }
        for (const path of ["/admin-ui", "/admin-ui/", "/admin-ui/docs?x=https://evil.example#y", "/admin-ui/a//b"]) {
          const back = yield* browser.get(yield* atIssuer(yield* begin(browser, path)))
          assert.deepStrictEqual([back.status, back.location], [303, path], back.text)
        }
      })
    )
  }
)
