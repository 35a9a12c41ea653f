import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../src/services/Database.ts"
import * as Proxy from "./Proxy.ts"
import * as Upstream from "./ScriptedUpstream.ts"

layer(Proxy.database)("ProxyApp presents to the upstream", (it) => {
  it.effect("the key's mapping, else its project's, else the provider's default, else the start-up fallback", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const presented: Array<unknown> = []
      yield* Proxy.make({ configured: providerRow })
      const key = yield* Proxy.issueKey({}, { project: true })
      yield* sql`INSERT INTO upstream_credential_mappings (scope, key_id, sealed_credential, credential_origin)
        VALUES ('key', ${key.id}, 'clear.of-key', 'http://provider.test:8080')`
      yield* sql`INSERT INTO upstream_credential_mappings (scope, project_id, sealed_credential, credential_origin)
        VALUES ('project', ${key.projectId}, 'clear.of-project', 'http://provider.test:8080')`
      const steps = [
        sql`UPDATE upstream_credential_mappings SET enabled = false WHERE scope = 'key'`,
        sql`UPDATE upstream_credential_mappings SET enabled = false WHERE scope = 'project'`,
        sql`UPDATE provider_configs SET sealed_credential = NULL, base_url = 'https://upstream.test'`,
        Effect.void
      ]
      for (const step of steps) {
        const gateway = yield* Proxy.restarted()
        yield* gateway.ask({ method: "GET", target: "/v1/models", headers: key.headers })
        presented.push(gateway.sent[0]?.headers[1])
        yield* step
      }
      assert.deepStrictEqual(presented, [
        "Bearer of-key",
        "Bearer of-project",
        "Bearer of-provider",
        "Bearer startup-secret"
      ])
    })
  )

  it.effect.each([
    ["the key's mapping", "UPDATE upstream_credential_mappings SET credential_origin = 'https://provider.test:8080'"],
    ["a mapping of UPSTREAM_BASE_URL", "UPDATE upstream_credential_mappings SET credential_origin = NULL"],
    [
      "the provider's",
      "DELETE FROM upstream_credential_mappings; UPDATE provider_configs SET base_url = 'http://provider.test'"
    ],
    [
      "UPSTREAM_SERVICE_KEY",
      "DELETE FROM upstream_credential_mappings; UPDATE provider_configs SET sealed_credential = NULL"
    ]
  ] as const)("no credential that was stored for another origin, nor the next one in its place: %s", ([, statements]) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* Proxy.make({ configured: providerRow })
      const key = yield* Proxy.issueKey()
      yield* sql`INSERT INTO upstream_credential_mappings (scope, key_id, sealed_credential, credential_origin)
        VALUES ('key', ${key.id}, 'clear.of-key', 'http://provider.test:8080')`
      for (const statement of statements.split(";")) yield* sql.unsafe(statement)
      const gateway = yield* Proxy.restarted()
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/models", headers: key.headers })
      assert.deepStrictEqual([wire.status, JSON.parse(wire.text).error.code], [500, "invalid_configuration"])
      assert.include(wire.text, "stored for another address")
      assert.deepStrictEqual(gateway.sent, [])
    })
  )

  it.effect("nothing, when there is no credential at all: the caller learns that an operator must act", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstreams: Proxy.keyless })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/models", headers: key.headers })
      assert.deepStrictEqual(
        [wire.status, JSON.parse(wire.text).error.code, gateway.sent],
        [500, "invalid_configuration", []]
      )
      assert.include(wire.text, "UPSTREAM_SERVICE_KEY")
    })
  )

  it.effect.each([
    ["custom_header", "raw", ["x-upstream-api-key", "of-provider"]],
    ["custom_header", "bearer", ["x-upstream-api-key", "Bearer of-provider"]],
    ["authorization_bearer", "raw", ["authorization", "Bearer of-provider"]]
  ] as const)("its credential in mode %s, format %s", ([mode, format, expected]) =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const row = Effect.andThen(
        providerRow,
        sql`UPDATE provider_configs SET credential_header_mode = ${mode}, credential_header_name = 'x-upstream-api-key',
          credential_header_value_format = ${format}`
      )
      const gateway = yield* Proxy.make({ configured: row })
      const key = yield* Proxy.issueKey()
      yield* gateway.ask({ method: "GET", target: "/v1/models", headers: key.headers })
      const [sent] = gateway.sent
      assert.deepStrictEqual([sent?.origin, sent?.headers.slice(0, 2)], ["http://provider.test:8080", expected])
    })
  )

  it.effect.each([
    ["in one piece", ["x startup-secret y startup-secret"]],
    ["in pieces", ["x startup-", "secr", "et y startup-secret"]],
    ["byte by byte", [..."x startup-secret y startup-secret"]]
  ] as const)("and no refusal of the upstream repeats it to the client: %s", ([, pieces]) =>
    Effect.gen(function* () {
      const length = ["content-type", "text/plain", "content-length", "33"]
      const gateway = yield* Proxy.make({ upstream: Upstream.answers(401, length, ...pieces) })
      const key = yield* Proxy.issueKey()
      for (const target of ["/v1/models", "/v1/messages/batches?limit=1"]) {
        const wire = yield* gateway.ask({ method: "GET", target, headers: key.headers })
        assert.deepStrictEqual([wire.status, wire.text], [401, `x ${"*".repeat(14)} y ${"*".repeat(14)}`])
      }
    })
  )

  it.effect.each([
    [401, "www-authenticate", "Bearer startup-secret", `Bearer ${"*".repeat(14)}`],
    [302, "location", "https://elsewhere.test/?k=startup%2Dsecret", `https://elsewhere.test/?k=${"*".repeat(16)}`]
  ] as const)("nor does a header, nor an escape: %s %s", ([status, name, value, shown]) =>
    Effect.gen(function* () {
      const body = '{"error":"\\u0073tartup-secret"}'
      const gateway = yield* Proxy.make({
        upstream: Upstream.answers(status, ["content-type", "application/json", name, value], body)
      })
      const key = yield* Proxy.issueKey()
      for (const target of ["/v1/models", "/v1/messages/batches?limit=1"]) {
        const wire = yield* gateway.ask({ method: "GET", target, headers: key.headers })
        assert.strictEqual(wire.header(name), shown)
        assert.notInclude(wire.text, "tartup")
      }
    })
  )

  it.effect("what an error ends with is not lost when it looks like a credential", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.answers(400, ["content-length", "9"], "a startup") })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/models", headers: key.headers })
      assert.strictEqual(wire.text, "a startup")
    })
  )

  it.effect("who asks, in headers that no client can forge", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const [individual, project] = [yield* Proxy.issueKey(), yield* Proxy.issueKey({}, { project: true })]
      const forged = [
        "X-Svc-Key-Id",
        "forged",
        "x-svc-project-id",
        "forged",
        "x-svc-service",
        "forged",
        "x-request-id",
        "r-1"
      ]
      for (const { headers } of [individual, project]) {
        yield* gateway.ask({ method: "GET", target: "/v1/models", headers: [...headers, ...forged] })
      }
      const own = gateway.sent.map(({ headers }) => headers.slice(headers.indexOf("x-svc-request-id")))
      assert.deepStrictEqual(own, [
        ["x-svc-request-id", "r-1", "x-svc-key-id", individual.id],
        ["x-svc-request-id", "r-1", "x-svc-key-id", project.id, "x-svc-project-id", project.projectId ?? ""]
      ])
    })
  )

  it.effect.each([
    ["managed, answered", Upstream.json({}), "managed_by_gateway"],
    ["managed, failed", Upstream.fails("connect", "refused"), "managed_by_gateway"],
    ["direct, answered", Upstream.json({}), "direct_upstream_passthrough"],
    ["direct, failed", Upstream.fails("headers", "malformed"), "direct_upstream_passthrough"]
  ] as const)("no secret of the client, and to the client and the records none of its own: %s", ([, upstream, mode]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstream,
        configured: Effect.andThen(providerRow, Proxy.configureRoute("chat-completions", { mode }))
      })
      const key = yield* Proxy.issueKey({ rpm_limit: 1 })
      const planted = [
        "x-svc-key",
        "x-aih-api-key",
        "proxy-authorization",
        "x-api-key",
        "x-upstream-api-key",
        "x-upstream-key",
        "x-svc-worker-token",
        "x-trusted-gateway-identity",
        "x-trusted-gateway-signature"
      ]
      const headers = [...key.headers, ...planted.flatMap((name) => [name, `canary-${name}`])]
      const targets = [
        Proxy.chat,
        Proxy.messages,
        "/v1/embeddings",
        "/providers/compat/v1/chat/completions",
        "/nowhere"
      ]
      const wires = yield* Effect.forEach(targets, (target) => gateway.ask({ target, headers, body: { model: "m" } }))
      const atUpstream = JSON.stringify(gateway.sent.map(({ headers, target, text }) => [headers, target, text]))
      assert.isAbove(gateway.sent.length, 0)
      assert.notMatch(atUpstream, new RegExp(`canary|${key.raw}`))
      const outside = JSON.stringify([wires.map(({ received, text }) => [received, text]), yield* gateway.records])
      assert.notMatch(outside, new RegExp(`canary|${key.raw}|of-provider|startup-secret|compat-secret`))
    })
  )
})

const providerRow = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`INSERT INTO provider_configs (provider, name, base_url, sealed_credential, credential_origin)
    VALUES ('upstream', 'main', 'http://provider.test:8080/v1', 'clear.of-provider', 'http://provider.test:8080')`
})
