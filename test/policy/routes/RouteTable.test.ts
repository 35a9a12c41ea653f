import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { canonicalRoutes } from "../../../src/policy/routes/CanonicalRoute.ts"
import * as Path from "../../../src/policy/routes/Path.ts"
import * as RouteTable from "../../../src/policy/routes/RouteTable.ts"

describe("RouteTable", () => {
  it("has the ten canonical routes in the specification's order: family A, family B, models", () => {
    assert.deepStrictEqual(
      canonicalRoutes.map(({ family, id, methods, pattern }) => [id, family, methods.join(" "), pattern]),
      [
        ["chat-completions", "a", "POST", "/v1/chat/completions"],
        ["responses", "a", "POST", "/v1/responses"],
        ["embeddings", "a", "POST", "/v1/embeddings"],
        ["messages", "b", "POST", "/v1/messages"],
        ["messages-count-tokens", "b", "POST", "/v1/messages/count_tokens"],
        ["message-batches", "b", "GET POST", "/v1/messages/batches"],
        ["message-batch", "b", "GET", "/v1/messages/batches/*"],
        ["message-batch-results", "b", "GET", "/v1/messages/batches/*/results"],
        ["message-batch-cancel", "b", "POST", "/v1/messages/batches/*/cancel"],
        ["models", "a", "GET", "/v1/models"]
      ]
    )
  })

  it.each([
    ["POST", "/v1/chat/completions", "chat-completions"],
    ["POST", "/v1/responses", "responses"],
    ["POST", "/v1/embeddings", "embeddings"],
    ["POST", "/v1/messages", "messages"],
    ["POST", "/v1/messages/count_tokens", "messages-count-tokens"],
    ["GET", "/v1/messages/batches", "message-batches"],
    ["POST", "/v1/messages/batches", "message-batches"],
    ["GET", "/v1/messages/batches/b1", "message-batch"],
    ["GET", "/v1/messages/batches/batches", "message-batch"],
    ["GET", "/v1/messages/batches/b1/results", "message-batch-results"],
    ["POST", "/v1/messages/batches/b1/cancel", "message-batch-cancel"],
    ["GET", "/v1/models", "models"],
    ["GET", "/v1/models?limit=2", "models"],
    ["GET", "/v1/%6Dodels", "models"],
    ["POST", "/%76%31/chat/%63ompletions", "chat-completions"],
    ["POST", "/v1/chat/completions/", "chat-completions"],
    ["GET", "/v1/messages/batches/", "message-batches"],
    ["GET", "/v1/messages/batches/b1/", "message-batch"]
  ])("routes %s %s to %s", (method, target, id) => {
    const route = match(method, target)
    assert.strictEqual<unknown>(route._tag === "Canonical" && route.route.id, id)
  })

  it.each([
    ["GET", "/v1/chat/completions", ["POST"]],
    ["DELETE", "/v1/messages/batches", ["GET", "POST"]],
    ["POST", "/v1/messages/batches/b1", ["GET"]],
    ["GET", "/v1/messages/batches/b1/cancel", ["POST"]],
    ["post", "/v1/responses", ["POST"]],
    ["HEAD", "/v1/models", ["GET"]],
    ["GET", "/providers/compat/v1/models", ["POST"]],
    ["GET", "/v1/models/gpt", []],
    ["GET", "/V1/models", []],
    ["GET", "/v1", []],
    ["GET", "/", []],
    ["POST", "/providers", []],
    ["POST", "/providers/other/v1/chat/completions", []],
    ["GET", "/v1/messages/batches/b1/results/more", []]
  ])("does not route %s %s; the path's methods are %j", (method, target, allowed) => {
    assert.deepStrictEqual(match(method, target), { _tag: "Unrouted", allowed })
  })

  it.each(["/admin-ui", "/admin-ui/", "/admin-ui/healthz", "/admin-ui/v1/chat/completions", "/%61dmin-ui/admin/keys"])(
    "leaves %s to the control listener, whatever the method",
    (target) => {
      for (const method of methods) assert.deepStrictEqual(match(method, target), { _tag: "Control" })
    }
  )

  it.each([
    ["/services", ""],
    ["/services/", ""],
    ["/services/ocr", "ocr"],
    ["/services/ocr/v1/models", "ocr"],
    ["/%73ervices/ocr?x", "ocr"]
  ])("takes %s for a service, whatever the method", (target, name) => {
    for (const method of methods) assert.deepStrictEqual(match(method, target), { _tag: "Service", name })
  })

  it.each([
    ["/providers/compat", "/"],
    ["/providers/compat/", "/"],
    ["/providers/compat/v1/chat/completions", "/v1/chat/completions"],
    ["/providers/compat/admin-ui", "/admin-ui"]
  ])("sends POST %s to the compatible upstream's %s", (target, rest) => {
    assert.deepInclude(match("POST", target), { _tag: "Compat", rest })
  })

  it.each([
    ["/v1/chat/completions", "chat-completions"],
    ["/v1/messages/batches/", "message-batches"],
    ["/v1/%6Dessages/batches", "message-batches"],
    ["/v1/messages/batches/b1", undefined],
    ["/v1/models", undefined],
    ["/v2/messages", undefined]
  ])("knows POST %s at the compatible upstream as %s", (rest, id) => {
    const route = match("POST", `/providers/compat${rest}`)
    assert.strictEqual(route._tag === "Compat" ? route.like?.id : "other", id)
  })

  it("gives every request one route, and a canonical one only to the paths that are listed", () => {
    fc.assert(
      fc.property(fc.constantFrom(...methods), segments, (method, segments) => {
        const path = `/${segments.join("/")}`
        const route = RouteTable.match(method, { path, segments })
        const listed = canonicalRoutes.filter(
          ({ methods, pattern }) => methods.some((one) => one === method) && listing(pattern).test(path)
        )
        assert.isAtMost(listed.length, 1)
        const governedElsewhere = segments[0] === "admin-ui" || segments[0] === "services"
        assert.strictEqual(route._tag === "Canonical", listed.length === 1 && !governedElsewhere)
        if (route._tag === "Canonical") assert.strictEqual(route.route, listed[0])
        if (governedElsewhere) assert.include(["Control", "Service"], route._tag)
      }),
      { numRuns: 300 }
    )
  })
})

const match = (method: string, target: string) => RouteTable.match(method, Result.getOrThrow(Path.canonicalise(target)))

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "get"]

const listing = (pattern: string) => new RegExp(`^${pattern.replaceAll("*", "[^/]+")}/?$`)

const word = fc.constantFrom(
  "v1",
  "messages",
  "batches",
  "results",
  "cancel",
  "models",
  "chat",
  "completions",
  "b1",
  "*"
)
const segments = fc.oneof(
  fc.array(fc.oneof(word, fc.constantFrom("responses", "embeddings", "count_tokens", "admin-ui", "services")), {
    minLength: 1,
    maxLength: 5
  }),
  fc
    .tuple(
      fc.constantFrom(...canonicalRoutes.map(({ pattern }) => pattern.slice(1).split("/"))),
      fc.array(fc.oneof(word, fc.constant("")), { maxLength: 1 })
    )
    .map(([pattern, more]) => [...pattern, ...more])
)
