import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as UpstreamUiPaths from "../../src/control/UpstreamUiPaths.ts"

const origin = "http://up:4000"
const { shown, shownJson, shownText, upstreamTarget } = UpstreamUiPaths.make([])

describe("UpstreamUiPaths", () => {
  it.each([
    ["/admin-ui/upstream-ui", "/ui"],
    ["/admin-ui/upstream-ui?page=1", "/ui?page=1"],
    ["/admin-ui/upstream-ui/", "/ui/"],
    ["/admin-ui/upstream-ui/?a=/../b", "/ui/?a=/../b"],
    ["/admin-ui/upstream-ui/login", "/ui/login"],
    ["/admin-ui/upstream-ui/a%20b/c.js", "/ui/a%20b/c.js"],
    ["/admin-ui/upstream-ui/key/list?x=1", "/key/list?x=1"],
    ["/admin-ui/upstream-ui/v2/login", "/v2/login"],
    ["/admin-ui/upstream-ui/v1/agents", "/v1/agents"],
    ["/admin-ui/upstream-ui/upstream-asset-prefix/_next/x.js", "/upstream-asset-prefix/_next/x.js"],
    ["/admin-ui/upstream-ui/keys", "/ui/keys"],
    ["/key/generate", "/key/generate"],
    ["/get_image?x", "/get_image?x"],
    ["/v1/agents", "/v1/agents"]
  ])("leads %s to the upstream's %s", (target, expected) => assert.strictEqual(upstreamTarget(target), expected))

  it.each([
    "/admin-ui/upstream-ui/../key/list",
    "/admin-ui/upstream-ui/%2e%2e/key",
    "/admin-ui/upstream-ui/.%2E/key",
    "/admin-ui/upstream-ui//key",
    "/admin-ui/upstream-ui/a%2f..%2fb",
    "/admin-ui/upstream-ui/a\\b",
    "/admin-ui/upstream-ui/a;b",
    "/admin-ui/upstream-ui/%252e%252e/key",
    "/admin-ui/upstream-uix",
    "/admin-ui/admin/keys",
    "/admin-ui/upstream%2Dui/x",
    "/other"
  ])("leads %s nowhere", (target) => assert.isUndefined(upstreamTarget(target)))

  it("leads nothing below the prefix out of the UI but to the root names", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[\w.~%/;\\-]{0,20}$/), (rest) => {
        const target = upstreamTarget(`/admin-ui/upstream-ui/${rest}`)
        if (target === undefined) return
        assert.notMatch(target, /\/\/|\/\.\.?(?:\/|$)|\\|%2f|%2e/i)
        if (!target.startsWith("/ui/")) assert.strictEqual(target, `/${rest}`)
      }),
      { numRuns: 1000 }
    )
  })

  it.each([
    ["/ui", "/admin-ui/upstream-ui"],
    ["/ui/", "/admin-ui/upstream-ui/"],
    ["/ui?login=1", "/admin-ui/upstream-ui?login=1"],
    [`${origin}/ui/x#y`, "/admin-ui/upstream-ui/x#y"],
    [`${origin}/key/list?a`, "/admin-ui/upstream-ui/key/list?a"],
    ["/uix", "/uix"],
    ["/key/list", "/key/list"],
    ["//up:4000/ui", "//up:4000/ui"],
    ["https://elsewhere/ui", "https://elsewhere/ui"],
    [`${origin}1/ui`, `${origin}1/ui`],
    ["ui/", "ui/"]
  ])("shows the link %s as %s", (link, expected) => assert.strictEqual(shown(link, origin), expected))

  it.each([
    [`<a href="/ui/keys">`, `<a href="/admin-ui/upstream-ui/keys">`],
    [`location='/ui'`, `location='/admin-ui/upstream-ui'`],
    ["`/ui/x`", "`/admin-ui/upstream-ui/x`"],
    [`"/upstream-asset-prefix/_next/a.js"`, `"/admin-ui/upstream-ui/upstream-asset-prefix/_next/a.js"`],
    [`\\"/upstream-asset-prefix/b.css\\"`, `\\"/admin-ui/upstream-ui/upstream-asset-prefix/b.css\\"`],
    [
      `"/get_image" "/v2/login" "/v3/x" "/public/a"`,
      `"/admin-ui/upstream-ui/get_image" "/admin-ui/upstream-ui/v2/login" "/admin-ui/upstream-ui/v3/x" "/admin-ui/upstream-ui/public/a"`
    ],
    [`base="${origin}"`, `base="/admin-ui/upstream-ui"`],
    [`u="${origin}/ui/x"`, `u="/admin-ui/upstream-ui/x"`],
    [`u="${origin}/key/list"`, `u="/key/list"`],
    [`"/uix" /ui "/v20/x" "/getter" "${origin}0"`, `"/uix" /ui "/v20/x" "/getter" "${origin}0"`]
  ])("shows %s in a page as %s", (text, expected) => assert.strictEqual(shownText(text, origin), expected))

  describe("with the names of a deployment's own upstream", () => {
    const own = UpstreamUiPaths.make([
      ...["/acme-assets/*", "/acme/.well-known/acme-ui-config", "/login", "/v1/agents", "/v1/x/*"],
      ...["/models", "/a/*", "/a", "/a/b"]
    ])

    it("adds each to the listener's paths once, and only what is not there yet", () => {
      assert.deepStrictEqual(
        own.patterns.filter((pattern) => !UpstreamUiPaths.make([]).patterns.includes(pattern)),
        ["/acme-assets/*", "/acme/.well-known/acme-ui-config", "/login", "/v1/x/*", "/a/*", "/a/b"]
      )
    })

    it.each([
      ["/acme-assets/_next/x.js?v=1", "/acme-assets/_next/x.js?v=1"],
      ["/admin-ui/upstream-ui/acme-assets/x.js", "/acme-assets/x.js"],
      ["/admin-ui/upstream-ui/acme/.well-known/acme-ui-config", "/acme/.well-known/acme-ui-config"],
      ["/admin-ui/upstream-ui/acme-assetsx", "/ui/acme-assetsx"],
      ["/admin-ui/upstream-ui/login", "/login"]
    ])("leads %s to the upstream's %s", (target, expected) => assert.strictEqual(own.upstreamTarget(target), expected))

    it.each([
      [`"/acme-assets/_next/a.js"`, `"/admin-ui/upstream-ui/acme-assets/_next/a.js"`],
      [`'/acme/.well-known/acme-ui-config'`, `'/admin-ui/upstream-ui/acme/.well-known/acme-ui-config'`],
      [`"/ui/x" "/v2/login"`, `"/admin-ui/upstream-ui/x" "/admin-ui/upstream-ui/v2/login"`],
      [
        `"/acme-assetsx" "/acme/xwell-known/acme-ui-config" "/other"`,
        `"/acme-assetsx" "/acme/xwell-known/acme-ui-config" "/other"`
      ]
    ])("shows %s in a page as %s", (text, expected) => assert.strictEqual(own.shownText(text, origin), expected))

    it("shows links with the upstream's origin below the prefix", () =>
      assert.strictEqual(own.shown(`${origin}/acme-assets/a?b`, origin), "/admin-ui/upstream-ui/acme-assets/a?b"))
  })

  it("changes links in JSON, and not a letter beside them", () => {
    const text = `{ "redirect_url" : "/ui/?login=1", "/ui/key": 12345678901234567890, "n": [1.0, "\\/ui\\/x", "say \\"/ui\\""],
      "a": "${origin}/ui", "\\u00e9": "\\ud800", "s": "text /ui" }`
    assert.strictEqual(
      shownJson(text, origin),
      `{ "redirect_url" : "/admin-ui/upstream-ui/?login=1", "/ui/key": 12345678901234567890, "n": [1.0, "/admin-ui/upstream-ui/x", "say \\"/ui\\""],
      "a": "/admin-ui/upstream-ui", "\\u00e9": "\\ud800", "s": "text /ui" }`
    )
  })

  it("leaves JSON without links, and what is no JSON, as it is", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json(),
          fc.string(),
          fc.string().map((text) => `"${text}`)
        ),
        (text) => {
          if (!text.includes("ui")) assert.strictEqual(shownJson(text, origin), text)
        }
      )
    )
  })
})
