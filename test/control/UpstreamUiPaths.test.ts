import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { shown, shownJson, shownText, upstreamTarget } from "../../src/control/UpstreamUiPaths.ts"

const origin = "http://up:4000"

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
