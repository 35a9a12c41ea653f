import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as Routing from "../../src/policy/Routing.ts"
import type { RouteMode } from "../../src/policy/routes/CanonicalRoute.ts"
import { policed, seeded, seededWith } from "../gateway/Snapshots.ts"

describe("Routing", () => {
  it("forwards path and query byte for byte, under the operator's settings of the route", () => {
    assert.deepStrictEqual(
      Routing.find("GET", "/v1/%6dodels/?a=%2f..//b&c", seededWith({ timeoutMs: 7 })),
      Result.succeed<Routing.Target>({
        routeId: "models",
        route: "/v1/models",
        provider: "upstream",
        family: "a",
        config: { ...seeded, timeoutMs: 7 },
        target: "/v1/%6dodels/?a=%2f..//b&c",
        objects: { _tag: "None" },
        accounting: "free",
        isUsageOptIn: false
      })
    )
  })

  it.each([
    ["/providers/compat", "/"],
    ["/providers/compat/", "/"],
    ["/providers/compat?a=1", "/?a=1"],
    ["/providers/compat/?a=/x", "/?a=/x"],
    ["/providers/compat/v1/chat/completions", "/v1/chat/completions"],
    ["/%70roviders/%63ompat/v1/na%c3%afve?x=%2F", "/v1/na%c3%afve?x=%2F"]
  ])("cuts the prefix off %s, and leaves %s as it came", (target, rest) => {
    const open = { ...Routing.defaultPaths, compat: ["/*"] }
    const found = Result.getOrThrow(Routing.find("POST", target, seededWith(), open))
    assert.deepStrictEqual([found.target, found.provider, found.route], [rest, "compat", "/providers/compat/*"])
  })

  describe("says why there is no target", () => {
    it.each([
      ["POST", "/v1/../key", "unsupported_route", "The request path contains a dot segment."],
      ["GET", "/v1/responses", "unsupported_route", "This path accepts POST only."],
      ["PUT", "/v1/messages/batches", "unsupported_route", "This path accepts GET and POST only."],
      [
        "POST",
        "/key/generate",
        "unsupported_route",
        "Route is not supported by this gateway. There is no POST /key/generate here. Common routes are POST /v1/chat/completions, /v1/responses, /v1/embeddings and /v1/messages, and GET /v1/models."
      ],
      [
        "POST",
        "/openai/deployments/m/chat/completions",
        "unsupported_route",
        "The gateway serves this path as POST /v1/chat/completions. Send the request there."
      ],
      [
        "GET",
        "/admin-ui",
        "unsupported_route",
        "Only the control listener serves the control API. Send the request to the control listener's port."
      ]
    ])("%s %s: %s, %s", (method, target, code, message) => {
      const { code: found, message: said } = Result.getOrThrow(Result.flip(Routing.find(method, target, seededWith())))
      assert.deepStrictEqual([found, said], [code, message])
    })
  })

  describe("accounts for a route by what it answers", () => {
    it.each([
      ["POST", "/v1/chat/completions", "answer", "status"],
      ["POST", "/v1/responses", "answer", "status"],
      ["POST", "/v1/embeddings", "answer", "status"],
      ["POST", "/v1/messages", "answer", "status"],
      ["POST", "/v1/messages/count_tokens", "free", "free"],
      ["POST", "/v1/messages/batches", "estimate", "status"],
      ["GET", "/v1/messages/batches", "free", "free"],
      ["GET", "/v1/messages/batches/b1", "free", "free"],
      ["GET", "/v1/messages/batches/b1/results", "free", "free"],
      ["POST", "/v1/messages/batches/b1/cancel", "free", "free"],
      ["GET", "/v1/models", "free", "free"],
      ["POST", "/providers/compat/v1/chat/completions", "answer", "answer"],
      ["POST", "/providers/compat/v1/messages/batches", "estimate", "estimate"],
      ["POST", "/providers/compat/v1/messages/batches/b1/cancel", "free", "free"],
      ["POST", "/providers/compat/v1/models", "answer", "answer"]
    ])("%s %s: managed %s, direct %s", (method, target, managed, direct) => {
      const accounting = (mode: RouteMode) => policed(method, target, seededWith({ mode })).accounting
      assert.deepStrictEqual(
        [accounting("managed_by_gateway"), accounting("direct_upstream_passthrough")],
        [managed, direct]
      )
    })
  })

  it.each([
    ["/v1/%6Dessages", "b"],
    ["/v1/chat/completions", "a"],
    ["/providers/compat/v1/%6Dessages", "b"],
    ["/providers/compat/v1/chat/completions", "a"]
  ])("reads the usage of POST %s in the terms of family %s", (target, family) => {
    assert.strictEqual(policed("POST", target).family, family)
  })

  it.each([
    ["/v1/chat/completions", true],
    ["/%76%31/chat/completions", true],
    ["/providers/compat/v1/chat/completions", true],
    ["/v1/responses", false],
    ["/v1/messages", false],
    ["/providers/compat/v1/messages", false]
  ])("POST %s tells a stream's usage only when asked: %s", (target, asked) => {
    assert.strictEqual(policed("POST", target).isUsageOptIn, asked)
  })
})
