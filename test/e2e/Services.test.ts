import { randomBytes } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Schema, type Scope } from "effect"
import { eventually } from "../Eventually.ts"
import { portOf } from "../upstream/SimulatorServer.ts"
import { type Answer, call, codeOf } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"
import { Pair } from "./Pair.ts"

interface Heard {
  readonly request: IncomingMessage
  readonly body: Buffer
}

/** A service of somebody's own: says what it is told to say, and keeps what it heard. */
const service = (
  answer: object
): Effect.Effect<{ readonly origin: string; readonly heard: ReadonlyArray<Heard> }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const heard: Array<Heard> = []
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        heard.push({ request, body: Buffer.concat(chunks) })
        response.setHeader("content-type", "application/json").end(JSON.stringify(answer))
      })
    })
    yield* Effect.acquireRelease(
      Effect.promise(() => new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))),
      () =>
        Effect.promise(() => {
          server.closeAllConnections()
          return new Promise<void>((closed) => server.close(() => closed()))
        })
    )
    return { origin: `http://127.0.0.1:${portOf(server.address())}`, heard }
  })

const Row = Schema.Struct({
  service_name: Schema.NullOr(Schema.String),
  http_method: Schema.NullOr(Schema.String),
  endpoint_path: Schema.NullOr(Schema.String),
  endpoint_template: Schema.NullOr(Schema.String),
  cost_mode: Schema.NullOr(Schema.String),
  pricing_rule_name: Schema.NullOr(Schema.String),
  cost_source: Schema.String,
  status_code: Schema.Int
})

const soon = <E, R>(ask: Effect.Effect<Answer, E, R>, status: number, code?: string) =>
  eventually(ask, (answer) => answer.status === status && (code === undefined || codeOf(answer) === code))

describe.skipIf(!Deployment.available)("a registered service", () => {
  layer(Pair.layer, { excludeTestServices: true })((it) => {
    it.effect("is served by every process as soon as it is whole, at its price, until it is switched off", () =>
      Effect.gen(function* () {
        const { createKey, deployment, operate, second } = yield* Pair
        const own = yield* service({ done: true, usage: { total_cost: 0.125 } })
        const key = yield* createKey()
        const ask = call(second, "/services/pictures/draw/7?size=l", key.raw, { body: { quality: "best" } })

        assert.strictEqual(codeOf(yield* ask), "missing_service")
        yield* operate("POST", "/services", { name: "pictures", upstream_base_url: own.origin })
        assert.include((yield* soon(ask, 409, "incomplete_service")).text, "credential")
        yield* operate("PATCH", "/services/pictures", {
          credential: "pictures-secret",
          cost_mode: "passthrough",
          openapi_endpoints: [{ method: "POST", path_template: "/draw/{id}" }],
          pricing_rules: [
            { name: "best", json_pointer: "/quality", equals: "best", cost_mode: "fixed", estimated_cost_usd: 2 }
          ]
        })
        assert.strictEqual((yield* soon(ask, 200)).text, JSON.stringify({ done: true, usage: { total_cost: 0.125 } }))
        yield* call(second, "/services/pictures", key.raw, { body: { quality: "plain" } })
        const [first] = own.heard
        assert.strictEqual(first?.request.url, "/draw/7?size=l")
        assert.strictEqual(first?.request.headers["authorization"], "Bearer pictures-secret")
        assert.strictEqual(first?.request.headers["x-svc-service"], "pictures")
        assert.strictEqual(first?.request.headers["x-svc-key-id"], key.id)

        yield* operate("POST", "/services/pictures/disable")
        yield* soon(ask, 403, "disabled_service")
        yield* operate("POST", "/services/pictures/enable")
        yield* soon(ask, 200)
        yield* operate("DELETE", "/services/pictures")
        yield* soon(ask, 404, "missing_service")

        // refusals of a service that there is not, or not yet, are on nobody's record
        yield* deployment.recorded(key.id, 3)
        const rows = yield* deployment.rows(
          Row,
          `SELECT service_name, http_method, endpoint_path, endpoint_template, cost_mode, pricing_rule_name, cost_source,
            status_code FROM usage_events WHERE key_id = '${key.id}' ORDER BY created_at, id`
        )
        const drawn = {
          service_name: "pictures",
          http_method: "POST",
          endpoint_path: "/draw/7",
          endpoint_template: "/draw/{id}",
          cost_mode: "fixed",
          pricing_rule_name: "best",
          cost_source: "service_pricing_rule_fixed",
          status_code: 200
        }
        assert.includeDeepMembers([...rows], [drawn])
        assert.includeDeepMembers(
          [...rows],
          [
            {
              ...drawn,
              endpoint_path: "/",
              endpoint_template: null,
              cost_mode: "passthrough",
              pricing_rule_name: null,
              cost_source: "service_default_passthrough"
            }
          ]
        )
        assert.deepStrictEqual([...new Set(rows.map(({ status_code }) => status_code))], [200])
      }).pipe(Effect.scoped)
    )

    it.effect("takes bytes of any kind as they come, up to its own limit", () =>
      Effect.gen(function* () {
        const { createKey, operate, second } = yield* Pair
        const own = yield* service({})
        const key = yield* createKey()
        yield* operate("POST", "/services", {
          name: "files",
          upstream_base_url: own.origin,
          credential: "files-secret",
          allowed_methods: ["PUT", "GET"],
          max_body_bytes: 1_500_000
        })
        const bytes = randomBytes(1_500_000)
        const put = (body: Uint8Array<ArrayBuffer>) =>
          Effect.promise(async () => {
            const response = await fetch(`${second.proxy}/services/files/a.bin`, {
              method: "PUT",
              headers: { authorization: `Bearer ${key.raw}`, "content-type": "application/octet-stream" },
              body
            })
            return { status: response.status, headers: response.headers, text: await response.text() }
          })
        yield* soon(call(second, "/services/files", key.raw), 200)
        assert.strictEqual((yield* put(new Uint8Array(bytes))).status, 200)
        assert.isTrue(own.heard.at(-1)?.body.equals(bytes))
        assert.strictEqual(own.heard.at(-1)?.request.method, "PUT")
        const before = own.heard.length
        const refused = yield* put(new Uint8Array(1_500_001))
        assert.deepStrictEqual([refused.status, codeOf(refused)], [413, "request_body_too_large"])
        assert.strictEqual(own.heard.length, before)
        assert.strictEqual(codeOf(yield* call(second, "/services/files", key.raw, { body: {} })), "unsupported_route")
      }).pipe(Effect.scoped)
    )

    it.effect("links of a project and of a key hold on the next request", () =>
      Effect.gen(function* () {
        const { createKey, operate, second } = yield* Pair
        const own = yield* service({})
        for (const name of ["one", "two"]) {
          yield* operate("POST", "/services", { name, upstream_base_url: own.origin, credential: "links-secret" })
        }
        const key = yield* createKey()
        const ask = (name: string) => call(second, `/services/${name}`, key.raw, { body: {} })
        yield* soon(ask("two"), 200)
        yield* operate("PATCH", `/keys/${key.id}`, { service_names: ["one"] })
        yield* soon(ask("two"), 403, "policy_denied")
        yield* soon(ask("one"), 200)
        const project = yield* operate("POST", "/projects", { name: "linked" })
        const { id } = yield* Effect.orDie(Schema.decodeUnknownEffect(Schema.Struct({ id: Schema.String }))(project))
        yield* operate("PATCH", `/keys/${key.id}`, { owner_type: "project", project_id: id })
        yield* soon(ask("two"), 200)
        yield* operate("PATCH", `/projects/${id}`, { service_names: ["one"] })
        yield* soon(ask("two"), 403, "policy_denied")
        yield* operate("PATCH", `/projects/${id}`, { service_names: [] })
        yield* soon(ask("two"), 200)
      }).pipe(Effect.scoped)
    )
  })
})
