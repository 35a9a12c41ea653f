import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { HttpApi } from "effect/http-api"
import { ControlApi } from "../../src/control/api/ControlApi.ts"
import { at, call, suite } from "./Listener.ts"

suite("OpenAPI", (it) => {
  it.effect("the document has every path with its method, its scopes and the codes of its refusals", () =>
    Effect.gen(function* () {
      const { json, status } = yield* call("GET", "/admin-ui/openapi.json", { authorization: null })
      assert.strictEqual(status, 200)
      const found: Array<string> = []
      HttpApi.reflect(ControlApi, {
        onGroup: () => {},
        onEndpoint: ({ endpoint: { method, path } }) => {
          const operation = at(json, "paths", path.replaceAll(/:(\w+)/g, "{$1}"), method.toLowerCase())
          assert.isDefined(operation, `${method} ${path}`)
          found.push(`${method} ${path}`)
          if (!path.startsWith("/admin-ui/admin")) return
          assert.isNotEmpty(at(operation, "x-required-scopes"), path)
          assert.deepStrictEqual(at(operation, "security"), [{ operatorToken: [] }], path)
          for (const status of [401, 403]) assert.isDefined(at(operation, "responses", String(status)), path)
        }
      })
      const paths = Object.values(Object(at(json, "paths"))).flatMap((methods) => Object.keys(Object(methods)))
      assert.strictEqual(paths.length, found.length)
      const conflict = at(json, "paths", "/admin-ui/admin/projects", "post", "responses", "409")
      assert.include(JSON.stringify(conflict), "duplicate_project")
      const body = at(json, "paths", "/admin-ui/admin/keys/{id}", "patch", "requestBody")
      assert.include(JSON.stringify([body, at(json, "components")]), "daily_budget_usd")
    })
  )

  it.effect("the document says in a line what each operation does, and what each group is about", () =>
    Effect.gen(function* () {
      const { json } = yield* call("GET", "/admin-ui/openapi.json", { authorization: null })
      const said = Object.entries(Object(at(json, "paths"))).flatMap(([path, methods]) =>
        Object.entries(Object(methods)).map(([method, operation]) => [`${method} ${path}`, Object(operation)] as const)
      )
      for (const [name, { summary }] of said) assert.match(summary ?? "", /^[A-Z][^\n]{5,78}[^.\s]$/, name)
      const groups = at(json, "tags")
      assert(Array.isArray(groups))
      for (const { name, description } of groups) assert.match(description ?? "", /\.$/, name)
      assert.strictEqual(groups.length, new Set(said.flatMap(([, { tags }]) => tags)).size)
    })
  )

  it.effect("the document does not ask for a body where none is needed", () =>
    Effect.gen(function* () {
      const { json } = yield* call("GET", "/admin-ui/openapi.json", { authorization: null })
      const demanded = (path: string) => at(json, "paths", `/admin-ui/admin/${path}`, "post", "requestBody", "required")
      assert.isFalse(demanded("keys/{id}/rotate"))
      assert.isFalse(demanded("services/{name}/openapi/preview"))
      assert.isTrue(demanded("keys"))
    })
  )

  it.effect("the document and its page are sent once: who has them is told that they have not changed", () =>
    Effect.gen(function* () {
      for (const path of ["/admin-ui/openapi.json", "/admin-ui/docs"]) {
        const whole = yield* call("GET", path, { authorization: null })
        const [, etag = ""] = /^W\/("[\w-]{43}")$/.exec(whole.headers["etag"] ?? "") ?? []
        assert.notStrictEqual(etag, "")
        assert.strictEqual(whole.headers["cache-control"], "no-cache")
        const {
          "content-encoding": encoding,
          "content-length": _,
          "content-type": _1,
          date: _2,
          ...others
        } = whole.headers
        assert.strictEqual(encoding, "gzip")
        const { "x-request-id": _3, ...kept } = others
        for (const known of [etag, `W/${etag}`, `"another", ${etag}`, "*"]) {
          const again = yield* call("GET", path, { authorization: null, headers: { "if-none-match": known } })
          assert.deepStrictEqual([again.status, again.text], [304, ""], known)
          // a browser takes them over into what it has
          assert.deepInclude(again.headers, kept)
        }
        const other = yield* call("GET", path, { authorization: null, headers: { "if-none-match": '"another"' } })
        assert.deepStrictEqual([other.status, other.text], [200, whole.text])
      }
    })
  )

  it.effect("the page that shows it fetches nothing from elsewhere", () =>
    Effect.gen(function* () {
      const { headers, text } = yield* call("GET", "/admin-ui/docs", { authorization: null })
      assert.include(headers["content-type"], "text/html")
      assert.notMatch(text, /<(?:script|img|iframe)[^>]+src=|<link[^>]+href=|@import|url\(["']?https?:/i)
    })
  )
})
