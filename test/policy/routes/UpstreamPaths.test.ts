import { assert, describe, it } from "@effect/vitest"
import { Option, Result } from "effect"
import * as Environment from "../../../layers/Environment.ts"
import * as Path from "../../../src/policy/routes/Path.ts"
import * as UpstreamPaths from "../../../src/policy/routes/UpstreamPaths.ts"
import { sensitive } from "../../gateway/ExposureTable.ts"

describe("UPSTREAM_UI_PATHS", () => {
  const read = (value: string) =>
    Result.match(Environment.read({ UPSTREAM_UI_PATHS: value }), {
      onFailure: (mistakes) => mistakes.map(({ message, variable }) => `${variable} ${message}`).join(),
      onSuccess: ({ upstreamUiPaths }) => upstreamUiPaths
    })

  it("is a list of exact paths and of prefixes, each once", () => {
    assert.deepStrictEqual(read(" /acme-assets/* ,/acme/.well-known/ui-config,, /acme-assets/*, /user/available"), [
      ...["/acme-assets/*", "/acme/.well-known/ui-config", "/user/available"]
    ])
    assert.deepStrictEqual(read(" "), [])
  })

  it.each([
    ["acme", "letters, digits"],
    ["/*", "letters, digits"],
    ["/acme/", "letters, digits"],
    ["/a/*/b", "letters, digits"],
    ["/a/../b", "letters, digits"],
    ["/a%2fb", "letters, digits"],
    ["/ok/*, /a//b", "path 2 "],
    ["/admin-ui/x", "a path of the gateway"],
    ["/services/x", "a path of the gateway"],
    ["/providers/compat/*", "a path of the gateway"],
    ["/v1/*", "a path of the gateway"],
    ["/key/*", "/key is sensitive"],
    ["/User/x/*", "/user is sensitive"],
    [Array.from({ length: 65 }, (_, i) => `/p${i}`).join(), "at most 64 paths"],
    [`/${"x".repeat(512)}`, "at most 512 characters"]
  ])("refuses %s, and says why", (value, why) => {
    const refusal = read(value)
    assert.match(String(refusal), /^UPSTREAM_UI_PATHS must /)
    assert.include(String(refusal), why)
  })

  it("never opens more of a sensitive group than a path that is named", () => {
    for (const path of sensitive) assert.isDefined(UpstreamPaths.refusedUiPath(`${path}/*`), path)
  })
})

describe("DIRECT_COMPAT_ALLOWED_PATHS", () => {
  const read = (value: string) => Environment.read({ DIRECT_COMPAT_ALLOWED_PATHS: value })

  it("is /v1/* until an operator names other paths", () => {
    assert.deepStrictEqual(Result.getOrThrow(read("")).directCompatPaths, ["/v1/*"])
    assert.deepStrictEqual(Result.getOrThrow(read("/v1/*, /rerank")).directCompatPaths, ["/v1/*", "/rerank"])
  })

  it.each(["/*", "/v1*", "v1", "/a//b", "/../key"])("refuses %s", (value) => {
    const [mistake] = Result.getOrThrow(Result.flip(read(value)))
    assert.deepInclude(mistake, { variable: "DIRECT_COMPAT_ALLOWED_PATHS" })
    assert.include(mistake?.message, "with at least one segment")
  })
})

describe("DIRECT_COMPAT_OWNERSHIP", () => {
  const read = (value: string) => Environment.read({ DIRECT_COMPAT_OWNERSHIP: value })

  it("is the project's until an operator says otherwise", () => {
    assert.strictEqual(Result.getOrThrow(read("")).directCompatOwnership, "project")
    for (const word of ["project", "key", "shared"] as const) {
      assert.strictEqual(Result.getOrThrow(read(word)).directCompatOwnership, word)
    }
    const [mistake] = Result.getOrThrow(Result.flip(read("everybody")))
    assert.deepInclude(mistake, { variable: "DIRECT_COMPAT_OWNERSHIP" })
    assert.include(mistake?.message, "project, key, shared")
  })
})

describe("UpstreamPaths", () => {
  const segmentsOf = (path: string) => Option.getOrThrow(Result.getSuccess(Path.canonicalise(path))).segments
  const support = UpstreamPaths.uiSupportWith(["/acme-assets/*", "/Acme/config"])

  it.each([
    ["/acme-assets/x", true],
    ["/acme-assets/", true],
    ["/acme-assets", false],
    ["/acme-assets2/x", false],
    ["/Acme/config", true],
    ["/acme/config", false],
    ["/Acme/config/x", false],
    ["/get_image", true],
    ["/get/x", true]
  ])("whether the UI's pages load %s: %s", (path, expected) =>
    assert.strictEqual(UpstreamPaths.isUiSupport(support, segmentsOf(path)), expected)
  )

  it.each([
    ["/key", "/key"],
    ["/KEY/list", "/key"],
    ["/%6Bey", "/key"],
    ["/ui./", "/ui"],
    ["/v1/agents/x", "/v1/agents"],
    ["/keyring", undefined],
    ["/v1", undefined],
    ["/", undefined]
  ])("the sensitive group of %s is %s", (path, expected) =>
    assert.strictEqual(UpstreamPaths.sensitiveGroup(path), expected)
  )
})
