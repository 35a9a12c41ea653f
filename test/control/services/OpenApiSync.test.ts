import { createHash } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { refusing } from "../../upstream/ScriptedServer.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"
import { json, type Saying, serve } from "../StudioServer.ts"

const services = `${admin}/services`
let made = 0

/** A service at `origin`, and the paths of its endpoints. */
const registered = Effect.fnUntraced(function* (upstream_base_url: string | null, more: object = {}) {
  const name = `documented-${++made}`
  yield* ok("POST", services, { body: { name, upstream_base_url, credential: "sk-canary", ...more } })
  return { name, preview: `${services}/${name}/openapi/preview`, sync: `${services}/${name}/openapi/sync` }
})

const operation = (operationId: string) => ({ operationId, summary: `Does\n  ${operationId}.` })

const document = (paths: object) => ({ openapi: "3.1.0", info: { title: "Things", version: "1.2" }, paths })
const first = document({
  "/health": { get: operation("health") },
  "/things": { get: operation("list"), post: operation("add"), parameters: [] },
  "/things/{id}": { delete: operation("drop") }
})
const second = document({
  "/health": { get: operation("health") },
  "/events/stream": { get: operation("events") },
  "/things": { get: operation("list") },
  "/things/{thing_id}": { delete: operation("drop"), patch: operation("change") }
})

const endpoint = (method: string, path_template: string, operation_id: string, svc_default = false) => ({
  method,
  path_template,
  operation_id,
  summary: `Does ${operation_id}.`,
  svc_default
})

const rule = (method: string, path_template: string, operation_id: string, estimated_cost_usd: number | null) => ({
  method,
  path_template,
  operation_id,
  cost_mode: estimated_cost_usd === null ? "none" : "fixed",
  estimated_cost_usd
})

suite("OpenAPI sync", (it) => {
  it.effect("a preview shows the endpoints and writes nothing; a sync takes over what was looked at", () =>
    Effect.gen(function* () {
      const service = yield* serve(json(first))
      const { name, preview, sync } = yield* registered(service.origin)
      const before = yield* ok("GET", `${services}/${name}`)
      const endpoints = [
        endpoint("GET", "/health", "health", true),
        endpoint("GET", "/things", "list"),
        endpoint("POST", "/things", "add"),
        endpoint("DELETE", "/things/{id}", "drop")
      ]
      const schema_hash = `sha256:${createHash("sha256").update(JSON.stringify(first)).digest("hex")}`
      const looked = yield* ok("POST", preview, { body: {} })
      assert.deepStrictEqual(looked, {
        source_path: "/openapi.json",
        schema_hash,
        title: "Things",
        version: "1.2",
        endpoints,
        added: endpoints,
        removed: []
      })
      assert.deepStrictEqual(yield* ok("GET", `${services}/${name}`), before)

      const synced = yield* ok("POST", sync, { body: { expected_schema_hash: schema_hash } })
      assert.deepInclude(synced, {
        openapi_source_path: "/openapi.json",
        openapi_schema_hash: schema_hash,
        openapi_endpoints: endpoints,
        endpoint_pricing_rules: [rule("GET", "/health", "health", null)]
      })
      assert.isString(at(synced, "openapi_synced_at"))
      assert.deepInclude(yield* ok("GET", `${services}/${name}/sync-status`), { openapi_schema_hash: schema_hash })
      assert.deepStrictEqual(
        service.asked,
        Array.from({ length: 2 }, () => ({ method: "GET", url: "/openapi.json", authorization: undefined }))
      )
    })
  )

  it.effect("prices stay, also of endpoints that have gone or whose parameter has another name", () =>
    Effect.gen(function* () {
      const service = yield* serve(json(first))
      const { name, preview, sync } = yield* registered(service.origin)
      const at_path = { source_path: "/docs/openapi.json" }
      const hashNow = Effect.map(ok("POST", preview, { body: at_path }), (json) => at(json, "schema_hash"))
      yield* ok("POST", sync, { body: { ...at_path, expected_schema_hash: yield* hashNow } })
      const prices = [rule("POST", "/things", "add", 0.25), rule("DELETE", "/things/{id}", "drop", 1)]
      yield* ok("PATCH", `${services}/${name}`, { body: { endpoint_pricing_rules: prices } })

      service.says(json(second))
      const looked = yield* ok("POST", preview, { body: {} })
      assert.strictEqual(at(looked, "source_path"), "/docs/openapi.json")
      assert.deepStrictEqual(at(looked, "added"), [
        endpoint("GET", "/events/stream", "events", true),
        endpoint("PATCH", "/things/{thing_id}", "change")
      ])
      assert.deepStrictEqual(at(looked, "removed"), [endpoint("POST", "/things", "add")])
      const synced = yield* ok("POST", sync, { body: { expected_schema_hash: at(looked, "schema_hash") } })
      // the free /health was known, and an operator has taken its price away
      assert.deepStrictEqual(at(synced, "endpoint_pricing_rules"), [
        ...prices,
        rule("GET", "/events/stream", "events", null)
      ])
      assert.lengthOf(Object(at(synced, "openapi_endpoints")), 5)
    })
  )

  it.effect("a document that is not the previewed one is 409, and nothing changes", () =>
    Effect.gen(function* () {
      const service = yield* serve(json(first))
      const { name, preview, sync } = yield* registered(service.origin)
      const looked = yield* ok("POST", preview, { body: {} })
      service.says(json(second))
      const before = yield* ok("GET", `${services}/${name}`)
      const late = yield* call("POST", sync, { body: { expected_schema_hash: at(looked, "schema_hash") } })
      assert.deepStrictEqual(refusalOf(late), {
        status: 409,
        code: "service_openapi_changed",
        param: "expected_schema_hash"
      })
      assert.deepStrictEqual(yield* ok("GET", `${services}/${name}`), before)
      const nonsense = yield* call("POST", sync, { body: { expected_schema_hash: "md5:0" } })
      assert.deepInclude(refusalOf(nonsense), { status: 422, param: "expected_schema_hash" })
    })
  )

  it.effect(
    "what the service says instead of a document is told: 502 where it fails, 400 where it is no OpenAPI 3",
    () =>
      Effect.gen(function* () {
        const service = yield* serve()
        const { preview } = yield* registered(service.origin)
        const redirected = { status: 301, headers: { location: `${service.origin}/elsewhere` } }
        const sayings: ReadonlyArray<readonly [Saying, number, RegExp]> = [
          [{ status: 404 }, 502, /status 404/],
          [redirected, 502, /redirect/],
          [{ headers: { "content-type": "text/html" }, body: JSON.stringify(first) }, 502, /content type/],
          [{ body: JSON.stringify(first) }, 502, /content type/],
          [json("x".repeat(1_048_576)), 502, /limit of 1048576 bytes/],
          [{ headers: { "content-type": "application/json" }, body: "{" }, 400, /not a JSON object/],
          [json({ swagger: "2.0", paths: {} }), 400, /not OpenAPI 3/],
          [json(document({ things: { get: {} } })), 400, /"things/]
        ]
        for (const [saying, status, reason] of sayings) {
          service.says(saying)
          const answer = yield* call("POST", preview, { body: {} })
          const code = status === 502 ? "service_openapi_unavailable" : "invalid_service_openapi"
          assert.deepInclude(refusalOf(answer), { status, code }, String(reason))
          assert.match(answer.text.replaceAll("\\", ""), reason)
        }
        assert.strictEqual(new Set(service.asked.map(({ url }) => url)).size, 1)
      })
  )

  it.effect("goes nowhere but to a path of the service's own origin, and to no address that is not called", () =>
    Effect.gen(function* () {
      const service = yield* serve(json(first))
      const { name, preview } = yield* registered(service.origin)
      for (const source_path of [
        "openapi.json",
        "//evil.example/x",
        "http://evil.example/",
        "/a//b",
        "/a?b",
        "/a#b",
        "/a\\b",
        "/../x",
        "/a/./b",
        "/with space",
        `/${"x".repeat(512)}`,
        ""
      ]) {
        const answer = yield* call("POST", preview, { body: { source_path } })
        const refusal = { status: 400, code: "invalid_service_openapi", param: "source_path" }
        assert.deepStrictEqual(refusalOf(answer), refusal, source_path)
      }
      assert.deepStrictEqual(service.asked, [])

      const move = (upstream_base_url: string | null) =>
        ok("PATCH", `${services}/${name}`, { body: { upstream_base_url } })
      yield* move("http://169.254.169.254")
      const refused = { status: 400, code: "invalid_service_upstream", param: "upstream_base_url" }
      assert.deepStrictEqual(refusalOf(yield* call("POST", preview, { body: {} })), refused)
      yield* move(yield* refusing)
      const gone = yield* call("POST", preview, { body: {} })
      assert.deepInclude(refusalOf(gone), { status: 502, code: "service_openapi_unavailable" })
      yield* move(null)
      const incomplete = { status: 409, code: "incomplete_service", param: "upstream_base_url" }
      assert.deepStrictEqual(refusalOf(yield* call("POST", preview, { body: {} })), incomplete)
      const missing = yield* call("POST", `${services}/nothing/openapi/preview`, { body: {} })
      assert.deepStrictEqual(refusalOf(missing), { status: 404, code: "missing_service", param: null })
    })
  )
})
