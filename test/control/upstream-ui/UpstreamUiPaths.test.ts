import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as UpstreamUiPaths from "../../../src/control/upstream-ui/UpstreamUiPaths.ts"

const origin = "http://up:4000"
const { location, upstreamTarget } = UpstreamUiPaths.make([])
const asked = { origin, target: "/ui/login", host: "gateway:8081" }

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
    ["/admin-ui/upstream-ui/get_image?x", "/get_image?x"],
    ["/admin-ui/upstream-ui/upstream-asset-prefix/_next/x.js", "/upstream-asset-prefix/_next/x.js"],
    ["/admin-ui/upstream-ui/keys", "/ui/keys"]
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
    "/key/generate",
    "/get_image?x",
    "/v1/agents",
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

  it.each<readonly [link: string, shown: string | undefined]>([
    ["/ui", "/admin-ui/upstream-ui"],
    ["/ui/", "/admin-ui/upstream-ui/"],
    ["/ui?login=1", "/admin-ui/upstream-ui?login=1"],
    ["keys", "/admin-ui/upstream-ui/keys"],
    [`${origin}/ui/x#y`, "/admin-ui/upstream-ui/x#y"],
    [`${origin}/key/list?a`, "/admin-ui/upstream-ui/key/list?a"],
    ["/key/list", "/admin-ui/upstream-ui/key/list"],
    ["//up:4000/ui", "/admin-ui/upstream-ui"],
    ["/uix", undefined],
    ["/admin-ui/admin/keys", undefined],
    ["http://gateway:8081/admin-ui/admin/keys", undefined],
    ["//gateway:8081/admin-ui/upstream-ui/key/list", undefined],
    ["HTTP://GATEWAY:8081/", undefined],
    ["javascript:alert(1)", undefined],
    ["data:text/html,x", undefined],
    ["https://elsewhere/ui", "https://elsewhere/ui"],
    [`${origin}1/ui`, `${origin}1/ui`]
  ])("answers a redirect to %s with %s", (link, expected) => assert.strictEqual(location(link, asked), expected))

  it("leads no redirect to another path of the control origin", () => {
    const part = fc.constantFrom(
      "/",
      "\\\\",
      "ui",
      "key",
      "..",
      "admin-ui",
      "admin",
      "keys",
      "gateway:8081",
      "http:",
      "%2e",
      "?",
      "#",
      " ",
      "\t"
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const shown = location(parts.join(""), asked)
        if (shown === undefined) return
        const { host, pathname } = new URL(shown, "http://gateway:8081")
        if (host === "gateway:8081") assert.match(pathname, /^\/admin-ui\/upstream-ui(?:\/|$)/)
      }),
      { numRuns: 2000 }
    )
  })

  describe("with the names of a deployment's own upstream", () => {
    const own = UpstreamUiPaths.make(["/acme-assets/*", "/acme/.well-known/acme-ui-config", "/login"])

    it.each([
      ["/admin-ui/upstream-ui/acme-assets/x.js", "/acme-assets/x.js"],
      ["/admin-ui/upstream-ui/acme/.well-known/acme-ui-config", "/acme/.well-known/acme-ui-config"],
      ["/admin-ui/upstream-ui/acme-assetsx", "/ui/acme-assetsx"],
      ["/admin-ui/upstream-ui/login", "/login"]
    ])("leads %s to the upstream's %s", (target, expected) => assert.strictEqual(own.upstreamTarget(target), expected))

    it("answers a redirect to one of them with its path below the prefix", () =>
      assert.strictEqual(own.location(`${origin}/acme-assets/a?b`, asked), "/admin-ui/upstream-ui/acme-assets/a?b"))
  })
})
