import { assert, layer as describeWith } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import * as ControlApp from "../../../src/control/ControlApp.ts"
import { StartLink } from "../../../src/control/sign-in/StartLink.ts"
import { Database } from "../../../src/services/Database.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import { admin, at, layer, ok } from "../Listener.ts"
import { type RawAnswer, rawRequest } from "../portal/RawRequest.ts"

const path = "/admin-ui/session/link"
const fromTerminal = { "sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }

type Headers = Readonly<Record<string, string>>

const open = (code: string, headers: Headers = fromTerminal, method = "GET") =>
  rawRequest(method, `${path}?code=${code}`, { accept: "text/html", ...headers })

const begin = Effect.gen(function* () {
  return Redacted.value(yield* (yield* StartLink).begin)
})

const isSignedIn = ({ headers }: RawAnswer) => headers["set-cookie"]?.[0]?.startsWith("svc_session=") === true

const listener = layer(EmbeddedDatabase.layer).pipe(Layer.provideMerge(StartLink.layer))

describeWith(listener, { excludeTestServices: true })("The link that the program prints when it starts", (it) => {
  it.effect("signs in once, and leads to the portal", () =>
    Effect.gen(function* () {
      const code = yield* begin
      const first = yield* open(code)
      assert.deepStrictEqual([first.status, first.headers.location], [303, "/admin-ui/"])
      assert.isTrue(isSignedIn(first))
      const cookie = first.headers["set-cookie"]?.[0] ?? ""
      assert.match(cookie, /; HttpOnly/)
      assert.match(cookie, /; SameSite=Strict/)
      const page = { cookie: cookie.split(";", 1)[0] ?? "", "sec-fetch-site": "same-origin" }
      assert.strictEqual((yield* rawRequest("GET", `${admin}/keys`, page)).status, 200)

      const second = yield* open(code)
      assert.deepStrictEqual([second.status, isSignedIn(second)], [410, false])
      assert.include(second.text, "This link has been used")
      const again = yield* open(code, { ...fromTerminal, cookie: page.cookie })
      assert.deepStrictEqual([again.status, again.headers.location, isSignedIn(again)], [303, "/admin-ui/", false])

      const events = yield* ok("GET", `${admin}/audit-events?action=sessions:sign_in`)
      assert.strictEqual(at(events, 0, "after", "of"), "StartLink")
    })
  )

  it.effect("is used up by nothing but a person", () =>
    Effect.gen(function* () {
      const code = yield* begin
      for (const purpose of [{ "sec-purpose": "prefetch;prerender" }, { purpose: "prefetch" }]) {
        const answer = yield* open(code, { ...fromTerminal, ...purpose })
        assert.deepStrictEqual([answer.status, isSignedIn(answer)], [503, false])
      }
      const head = yield* open(code, fromTerminal, "HEAD")
      assert.isFalse(isSignedIn(head))
      const others: ReadonlyArray<Headers> = [
        {},
        { ...fromTerminal, "sec-fetch-site": "cross-site" },
        { ...fromTerminal, "sec-fetch-dest": "iframe" },
        { ...fromTerminal, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" }
      ]
      for (const headers of others) {
        const answer = yield* open(code, headers)
        assert.deepStrictEqual([answer.status, isSignedIn(answer)], [200, false])
        assert.include(answer.text, "If somebody sent it to you, close this page.")
        assert.include(String(answer.headers["content-security-policy"]), "frame-ancestors 'none'")
      }
      const crossSite = yield* open(code, { "sec-fetch-site": "cross-site", origin: "https://evil.example" }, "POST")
      assert.isFalse(isSignedIn(crossSite))
      assert.isTrue(isSignedIn(yield* open(code, { "sec-fetch-site": "same-origin" }, "POST")))
    })
  )

  it.effect("signs in one of two who open it at once", () =>
    Effect.gen(function* () {
      const code = yield* begin
      const answers = yield* Effect.all([open(code), open(code)], { concurrency: 2 })
      assert.lengthOf(answers.filter(isSignedIn), 1)
    })
  )

  it.effect("is unknown with another code, also that of an earlier start", () =>
    Effect.gen(function* () {
      const earlier = yield* begin
      yield* begin
      for (const code of [earlier, "", "short", "a".repeat(43), "%00"]) {
        const answer = yield* open(code)
        assert.deepStrictEqual([answer.status, isSignedIn(answer)], [404, false], code)
      }
    })
  )

  it.effect("can be opened again if nobody could be signed in", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const code = yield* begin
      yield* sql`UPDATE operator_tokens SET disabled = true`
      assert.strictEqual((yield* open(code)).status, 503)
      yield* sql`UPDATE operator_tokens SET disabled = false`
      assert.isTrue(isSignedIn(yield* open(code)))
    })
  )
})

describeWith(StartLink.layer)("The code of the link", (it) => {
  it.effect("is valid for a minute", () =>
    Effect.gen(function* () {
      const { begin, take } = yield* StartLink
      const code = Redacted.value(yield* begin)
      yield* TestClock.adjust(Duration.seconds(59))
      assert.strictEqual(yield* take("other"), "unknown")
      yield* TestClock.adjust(Duration.seconds(1))
      assert.strictEqual(yield* take(code), "expired")
      const next = Redacted.value(yield* begin)
      assert.deepStrictEqual([yield* take(next), yield* take(next)], ["taken", "used"])
    })
  )
})

describeWith(layer(EmbeddedDatabase.layer, { routes: ControlApp.layer }), { excludeTestServices: true })(
  "Without a terminal",
  (it) => {
    it.effect("no code signs in", () =>
      Effect.gen(function* () {
        const answer = yield* open("a".repeat(43))
        assert.deepStrictEqual([answer.status, isSignedIn(answer)], [404, false])
      })
    )
  }
)
