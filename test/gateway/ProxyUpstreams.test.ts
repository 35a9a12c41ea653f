import { assert, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import type * as StartupUpstreams from "../../src/policy/routes/StartupUpstreams.ts"
import { Database } from "../../src/services/Database.ts"
import * as Proxy from "./Proxy.ts"
import type { ClientRequest } from "./RecordingWire.ts"
import * as Upstream from "./ScriptedUpstream.ts"

const openai = Option.some(Proxy.upstreamOf("UPSTREAM_OPENAI_BASE_URL", "https://a.test/openai/v1", "of-openai"))
const anthropic = Option.some(Proxy.upstreamOf("UPSTREAM_ANTHROPIC_BASE_URL", "https://b.test", "of-anthropic"))
const vendors: StartupUpstreams.UpstreamsByFamily = { both: Option.none(), a: openai, b: anthropic }

const at = (address: string) => ({
  both: Option.some(Proxy.upstreamOf("UPSTREAM_BASE_URL", address, "startup-secret"))
})

const version = ["anthropic-version", "2023-06-01"]
const say = [{ role: "user", content: "hi" }]
const chat: ClientRequest = { target: Proxy.chat, body: { model: "gpt", messages: say } }
const messages: ClientRequest = {
  target: Proxy.messages,
  headers: version,
  body: { model: "claude", max_tokens: 5, messages: say }
}
const models: ClientRequest = { method: "GET", target: "/v1/models" }

const asKey = (request: ClientRequest, key: Pick<Proxy.IssuedKey, "headers">): ClientRequest => ({
  ...request,
  headers: [...key.headers, ...(request.headers ?? [])]
})

/** Where an exchange went, and what it presented there. */
const whereTo = ({ headers, origin, target }: Upstream.Sent) => [
  origin + target,
  ...headers.flatMap((name, i) =>
    i % 2 === 0 && /^(?:authorization|x-api-key)$/i.test(name) ? [`${name}: ${headers[i + 1]}`] : []
  )
]

const row = (name: string, address: string, more: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(Database, ({ sql }) => {
    const origin = new URL(address).origin
    const columns = { provider: "upstream", name, base_url: address, sealed_credential: `clear.of-${name}` }
    return sql`INSERT INTO provider_configs ${sql.insert({ ...columns, credential_origin: origin, ...more })}`
  })

layer(Proxy.database)("An upstream below a path of its host", (it) => {
  it.effect.each(["https://up.test/api/v1", "https://up.test/v1beta/openai"])(
    "%s has every route below it",
    (address) =>
      Effect.gen(function* () {
        const gateway = yield* Proxy.make({ upstreams: at(address) })
        const key = yield* Proxy.issueKey()
        for (const request of [chat, messages, models, { ...chat, target: `${Proxy.chat}?a=/b` }]) {
          yield* gateway.ask(asKey(request, key))
        }
        assert.deepStrictEqual(
          gateway.sent.map(({ origin, target }) => origin + target),
          [
            `${address}/chat/completions`,
            `${address}/messages`,
            `${address}/models`,
            `${address}/chat/completions?a=/b`
          ]
        )
      })
  )

  it.effect("so has the direct compatible one, and what it fails goes on to the other below its own path", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstreams: at("https://up.test/api/v1"),
        settings: Proxy.compatAt("https://compat.test/openai/v1"),
        upstream: (sink, request) =>
          Upstream.json({}, request.origin === "https://compat.test" ? 503 : 200)(sink, request)
      })
      const key = yield* Proxy.issueKey()
      const target = "/providers/compat/v1/chat/completions"
      assert.strictEqual((yield* gateway.ask(asKey({ ...chat, target }, key))).status, 200)
      assert.deepStrictEqual(gateway.sent.map(whereTo), [
        ["https://compat.test/openai/v1/chat/completions", "authorization: Bearer compat-secret"],
        ["https://up.test/api/v1/chat/completions", "authorization: Bearer startup-secret"]
      ])
    })
  )

  it.effect("the wildcard reaches what is below the base, and nothing beside it", () =>
    Effect.gen(function* () {
      const allowed_paths = ["/v1/*", "/rerank", "/../*"]
      const gateway = yield* Proxy.make({
        upstreams: at("https://up.test/v1/key"),
        configured: Proxy.openWildcard({ allowed_methods: ["GET", "POST"], allowed_paths })
      })
      const key = yield* Proxy.issueKey()
      const statusOf = (target: string) =>
        Effect.map(gateway.ask(asKey({ method: "GET", target }, key)), ({ status }) => status)
      assert.strictEqual(yield* statusOf("/v1/generate"), 404)
      assert.strictEqual(yield* statusOf("/rerank"), 404)
      assert.strictEqual(yield* statusOf("/v1/../x"), 404)
      const gemini = yield* Proxy.restarted({ upstreams: at("https://up.test/v1beta/openai") })
      const answer = yield* gemini.ask(asKey({ method: "GET", target: "/v1/%6fther/x?limit=1" }, key))
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(
        [...gateway.sent, ...gemini.sent].map(({ target }) => target),
        ["/v1beta/openai/%6fther/x?limit=1"]
      )
    })
  )

  it.effect("nor is the direct compatible upstream's administration reached through its base", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ settings: Proxy.compatAt("https://compat.test/v1/key") })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask(asKey({ ...chat, target: "/providers/compat/v1/generate" }, key))
      assert.deepStrictEqual([wire.status, gateway.sent], [404, []])
      assert.include(wire.text, "base URL")
    })
  )

  it.effect.each([
    ["https://up.test/api/v1", "/api/v1/messages/batches/x", "/v1/messages/batches/x"],
    ["https://up.test/api/v1", "http://up.test/api/v1/messages/batches/x?y#z", "/v1/messages/batches/x?y#z"],
    ["https://up.test/v4", "/v4/messages/batches/x", "/v1/messages/batches/x"],
    ["https://up.test/v4", "/v44/x", "/v44/x"],
    ["https://up.test/api/v1", "/login", "/login"]
  ] as const)("%s: its link to %s is %s at the gateway", ([address, location, shown]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstreams: at(address),
        upstream: Upstream.answers(303, ["location", location]),
        configured: Proxy.openWildcard({ allowed_methods: ["GET"], allowed_paths: ["/v1/*"] })
      })
      const key = yield* Proxy.issueKey()
      for (const target of ["/v1/messages/batches", "/v1/other"]) {
        const wire = yield* gateway.ask(asKey({ method: "GET", target }, key))
        assert.deepStrictEqual([wire.status, wire.header("location")], [303, shown])
      }
    })
  )
})

/** What the upstream was told of the request, by name. */
const told = ({ headers }: Upstream.Sent) =>
  headers.filter((name, i) => i % 2 === 0 && /^(?:x-svc-|traceparent)/i.test(name)).map((name) => name.toLowerCase())

layer(Proxy.database)("What an upstream is told of a request", (it) => {
  const ids = ["x-svc-request-id", "x-svc-key-id", "x-svc-project-id"]
  const span = ["traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]
  const traced = (request: ClientRequest) => ({ ...request, headers: [...(request.headers ?? []), ...span] })

  it.effect("is its key and project, where one upstream serves both families", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstreams: at("https://up.test") })
      const key = yield* Proxy.issueKey({}, { project: true })
      yield* gateway.ask(asKey(traced(chat), key))
      assert.deepStrictEqual(gateway.sent.map(told), [[...ids, "traceparent"]])
    })
  )

  it.effect("is its id and its trace alone, where the upstream is a vendor of one family", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstreams: vendors })
      const key = yield* Proxy.issueKey({}, { project: true })
      for (const request of [chat, messages]) yield* gateway.ask(asKey(traced(request), key))
      const configured = row("own-openai", "https://c.test", { family: "openai" })
      const other = yield* Proxy.make({ upstreams: at("https://up.test"), configured })
      yield* other.ask(asKey(traced(chat), yield* Proxy.issueKey({}, { project: true })))
      assert.strictEqual(other.sent[0]?.origin, "https://c.test")
      for (const sent of [...gateway.sent, ...other.sent]) {
        assert.deepStrictEqual(told(sent), ["x-svc-request-id", "traceparent"])
      }
    })
  )
})

layer(Proxy.database)("Two vendors behind one gateway", (it) => {
  it.effect("each gets the requests of its family, with its own credential in the header that it reads", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstreams: vendors,
        configured: Proxy.openWildcard({ allowed_methods: ["GET"], allowed_paths: ["/v1/*"] })
      })
      const key = yield* Proxy.issueKey()
      const requests: ReadonlyArray<ClientRequest> = [
        chat,
        // the route decides, not a header
        { ...chat, headers: version },
        { target: "/v1/embeddings", body: { model: "e", input: "x" } },
        messages,
        { ...messages, headers: [] },
        { method: "GET", target: "/v1/messages/batches/b_1/results", headers: version },
        models,
        { ...models, headers: version },
        { method: "GET", target: "/v1/files" },
        { method: "GET", target: "/v1/files", headers: version }
      ]
      for (const request of requests) yield* gateway.ask(asKey(request, key))
      const [bearer, header] = ["authorization: Bearer of-openai", "x-api-key: of-anthropic"]
      const [a, b] = ["https://a.test/openai/v1", "https://b.test/v1"]
      assert.deepStrictEqual(gateway.sent.map(whereTo), [
        [`${a}/chat/completions`, bearer],
        [`${a}/chat/completions`, bearer],
        [`${a}/embeddings`, bearer],
        [`${b}/messages`, header],
        [`${b}/messages`, header],
        [`${a}/models`, bearer],
        [`${b}/models`, header],
        [`${a}/files`, bearer],
        [`${b}/files`, header]
      ])
      assert.includeMembers([...(gateway.sent.at(-1)?.headers ?? [])], version)
    })
  )

  it.effect("the vendor itself answers for a model of the other one", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstreams: vendors,
        upstream: (sink, request) =>
          Upstream.json({ error: { message: `${request.origin} has no such model` } }, 404)(sink, request)
      })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask(asKey({ ...chat, body: { model: "claude", messages: say } }, key))
      assert.deepStrictEqual([wire.status, gateway.sent.length], [404, 1])
      assert.include(wire.text, "https://a.test has no such model")
    })
  )

  it.effect("without an upstream of its own a family has that of both, or is refused by name", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstreams: { both: Option.none(), b: anthropic } })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask(asKey(chat, key))
      assert.deepStrictEqual([wire.status, JSON.parse(wire.text).error.code], [500, "invalid_configuration"])
      assert.include(wire.text, "UPSTREAM_OPENAI_BASE_URL")
      const shared = yield* Proxy.restarted({ upstreams: { b: anthropic } })
      yield* shared.ask(asKey(chat, key))
      yield* shared.ask(asKey(messages, key))
      assert.deepStrictEqual([...gateway.sent, ...shared.sent].map(whereTo), [
        ["https://upstream.test/v1/chat/completions", "authorization: Bearer startup-secret"],
        ["https://b.test/v1/messages", "x-api-key: of-anthropic"]
      ])
    })
  )

  it.effect("a provider row comes before the environment, and a family's own before one of both", () =>
    Effect.gen(function* () {
      const rows = Effect.andThen(
        row("both", "https://row.test/api/v1"),
        row("anthropic", "https://claude.test", {
          family: "anthropic",
          credential_header_mode: "custom_header",
          credential_header_name: "x-api-key"
        })
      )
      const gateway = yield* Proxy.make({ upstreams: vendors, configured: rows })
      const key = yield* Proxy.issueKey()
      yield* gateway.ask(asKey(chat, key))
      yield* gateway.ask(asKey(messages, key))
      assert.deepStrictEqual(gateway.sent.map(whereTo), [
        ["https://row.test/api/v1/chat/completions", "authorization: Bearer of-both"],
        ["https://claude.test/v1/messages", "x-api-key: of-anthropic"]
      ])
    })
  )

  it.effect("no credential follows a row to another address, neither the environment's nor a mapping", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const stranger = row("stranger", "https://stranger.test", { family: "anthropic" })
      const bare = sql`UPDATE provider_configs SET sealed_credential = NULL, credential_origin = NULL`
      const gateway = yield* Proxy.make({ upstreams: vendors, configured: Effect.andThen(stranger, bare) })
      const keys = yield* Effect.forEach([undefined, "https://b.test", "https://a.test"], (origin) =>
        Effect.gen(function* () {
          const key = yield* Proxy.issueKey()
          if (origin === undefined) return key
          yield* sql`INSERT INTO upstream_credential_mappings (scope, key_id, sealed_credential, credential_origin)
            VALUES ('key', ${key.id}, 'clear.of-key', ${origin})`
          return key
        })
      )
      for (const key of keys) {
        const wire = yield* gateway.ask(asKey(messages, key))
        assert.deepStrictEqual([wire.status, JSON.parse(wire.text).error.code], [500, "invalid_configuration"])
        assert.include(wire.text, "stored for another address")
      }
      assert.deepStrictEqual(gateway.sent, [])
      for (const key of keys.filter((_, i) => i !== 1)) yield* gateway.ask(asKey(chat, key))
      assert.deepStrictEqual(gateway.sent.map(whereTo), [
        ["https://a.test/openai/v1/chat/completions", "authorization: Bearer of-openai"],
        ["https://a.test/openai/v1/chat/completions", "authorization: Bearer of-key"]
      ])
    })
  )

  it.effect("a row that cannot be read stops its own family alone", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* sql`ALTER TABLE provider_configs DROP CONSTRAINT provider_configs_credential_header_mode_check`
      const newer = row("newer", "https://row.test", { family: "anthropic", credential_header_mode: "signature" })
      const gateway = yield* Proxy.make({ upstreams: vendors, configured: newer })
      const key = yield* Proxy.issueKey()
      const statuses = [
        (yield* gateway.ask(asKey(chat, key))).status,
        (yield* gateway.ask(asKey(messages, key))).status
      ]
      assert.deepStrictEqual(statuses, [200, 500])
      assert.deepStrictEqual(
        gateway.sent.map(({ origin }) => origin),
        ["https://a.test"]
      )
      yield* sql`DELETE FROM provider_configs`
    })
  )

  it.effect(
    "a key's own credential goes to the vendor that it was stored for; for the other one the default counts",
    () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const gateway = yield* Proxy.make({ upstreams: vendors })
        const key = yield* Proxy.issueKey({}, { project: true })
        yield* sql`INSERT INTO upstream_credential_mappings (scope, key_id, sealed_credential, credential_origin)
        VALUES ('key', ${key.id}, 'clear.of-key', 'https://b.test')`
        yield* sql`INSERT INTO upstream_credential_mappings (scope, project_id, sealed_credential, credential_origin)
        VALUES ('project', ${key.projectId}, 'clear.of-project', 'https://a.test')`
        yield* gateway.ask(asKey(chat, key))
        yield* gateway.ask(asKey(messages, key))
        assert.deepStrictEqual(gateway.sent.map(whereTo), [
          ["https://a.test/openai/v1/chat/completions", "authorization: Bearer of-project"],
          ["https://b.test/v1/messages", "x-api-key: of-key"]
        ])
      })
  )

  it.effect(
    "in direct mode a client's own credential goes to the vendor of the route, in the header that it reads",
    () =>
      Effect.gen(function* () {
        const gateway = yield* Proxy.make({ upstreams: vendors })
        yield* Proxy.configureRoute("messages", { mode: "direct_upstream_passthrough" })
        const direct = yield* Proxy.restarted({ upstreams: vendors })
        yield* direct.ask({ ...messages, headers: ["authorization", "Bearer sk-ant-mine", ...version] })
        assert.deepStrictEqual([...gateway.sent, ...direct.sent].map(whereTo), [
          ["https://b.test/v1/messages", "x-api-key: sk-ant-mine"]
        ])
      })
  )
})
