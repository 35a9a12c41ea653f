import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { portOf } from "../upstream/SimulatorServer.ts"
import * as Calls from "./Calls.ts"

interface Recorder {
  readonly origin: string
  /** The heads and bodies of every request, oldest first. */
  readonly heard: Array<string>
}

/** A server that takes whatever comes, and keeps it. */
const recorder: Effect.Effect<Recorder, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const heard: Array<string> = []
      const server = createServer((request, response) => {
        let body = ""
        request.setEncoding("utf8").on("data", (text) => {
          body += text
        })
        request.on("end", () => {
          heard.push([request.method, request.url, ...request.rawHeaders, body].join("\n"))
          response
            .setHeader("content-type", "application/json")
            .end(`{"action":"allow","services":[],"openapi":"3.0.0"}`)
        })
      })
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      return { heard, server }
    }),
    ({ server }) =>
      Effect.promise(
        () =>
          new Promise((closed) => {
            server.closeAllConnections()
            server.close(closed)
          })
      )
  ),
  ({ heard, server }) => ({ origin: `http://127.0.0.1:${portOf(server.address())}`, heard })
)

const secrets = {
  provider: "canary-provider",
  environment: "canary-environment",
  key: "canary-key-mapping",
  project: "canary-project-mapping",
  service: "canary-service",
  guardrail: "canary-guardrail",
  studio: "canary-studio"
}

const fieldOf = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((at, name) => (typeof at === "object" && at !== null ? Reflect.get(at, name) : undefined), value)

/** A gateway, its owner's server, and a stranger's. */
const made = Effect.gen(function* () {
  const owner = yield* recorder
  const stranger = yield* recorder
  const adminToken = RunningGateway.newAdminToken()
  const gateway = yield* GatewayOnPostgres.start({
    adminToken,
    environment: { UPSTREAM_BASE_URL: owner.origin, UPSTREAM_SERVICE_KEY: secrets.environment }
  })
  const operate = (method: string, path: string, body?: unknown) =>
    Effect.promise(() => gateway.operate(method, path, body))
  const issue = (body: object = {}) => Effect.promise(() => RunningGateway.createKey(gateway, { ...body }))
  const projectId = String(fieldOf(yield* operate("POST", "/projects", { name: "team" }), "id"))
  const keys = {
    plain: yield* issue(),
    mapped: yield* issue(),
    ofProject: yield* issue({ owner_type: "project", project_id: projectId })
  }
  /** Stores every kind of secret for the owner's server, whatever was there before. */
  const arranged = Effect.gen(function* () {
    const providers = yield* operate("GET", "/providers")
    assert(Array.isArray(providers))
    for (const provider of providers) yield* operate("DELETE", `/providers/${fieldOf(provider, "id")}`)
    // what a rollback of the stranger would like to bring back
    const activation = yield* operate("POST", "/services/import/activate", {
      services: [{ name: "payments", upstream_base_url: stranger.origin, health_check_path: "/health", enabled: true }]
    })
    yield* operate("PATCH", "/services/payments", {
      upstream_base_url: owner.origin,
      credential: secrets.service,
      openapi_source_path: "/openapi.json"
    })
    const provider = yield* operate("POST", "/providers", {
      provider: "upstream",
      name: "main",
      base_url: owner.origin,
      credential: secrets.provider
    })
    const mapping = (scope: string, target_id: string, credential: string) =>
      operate("POST", "/providers/upstream-credentials", { scope, target_id, credential })
    yield* mapping("key", keys.mapped.id, secrets.key)
    yield* mapping("project", projectId, secrets.project)
    yield* Effect.exit(operate("DELETE", "/guardrails/watch"))
    yield* operate("POST", "/guardrails", {
      name: "watch",
      endpoint_url: `${owner.origin}/guard`,
      failure_policy: "fail_open",
      bearer_token: secrets.guardrail,
      default_on: true,
      modes: ["pre_call"],
      enabled: true
    })
    yield* operate("PATCH", "/studio/connection", { base_url: `${owner.origin}/studio`, token: secrets.studio })
    owner.heard.length = 0
    stranger.heard.length = 0
    return {
      owner,
      stranger,
      providerId: String(fieldOf(provider, "id")),
      version: Number(fieldOf(activation, "snapshot", "version"))
    }
  })

  /** Takes every way by which a secret leaves. Refusals are as good as answers. */
  const everyWay = Effect.gen(function* () {
    const attempt = (method: string, path: string, body?: unknown) => Effect.exit(operate(method, path, body))
    for (const { raw } of Object.values(keys)) {
      yield* Calls.chat(gateway, raw)
      yield* Calls.call(gateway, "/v1/models", raw)
    }
    yield* Calls.call(gateway, "/services/payments/x", keys.plain.raw, { method: "POST", body: {} })
    yield* attempt("POST", "/provider-health/check")
    yield* attempt("POST", "/studio/connection/test")
    yield* attempt("GET", "/studio/services")
    yield* attempt("POST", "/services/payments/openapi/sync", {})
    yield* Effect.promise(() =>
      fetch(`${gateway.control}/admin-ui/upstream-ui/`, { headers: { authorization: `Bearer ${adminToken}` } })
    )
    yield* Effect.promise(() =>
      fetch(`${gateway.control}/admin-ui/v1/guardrails/test`, {
        method: "POST",
        headers: { authorization: `Bearer ${keys.plain.raw}`, "content-type": "application/json" },
        body: JSON.stringify({ mode: "pre_call", input: { messages: Calls.hello } })
      })
    )
  })
  const asOperator = (scopes: ReadonlyArray<string>) =>
    Effect.map(operate("POST", "/operator-tokens", { name: `of ${scopes.join()}`, scopes }), (issued) =>
      gateway.operateAs(String(fieldOf(issued, "raw_token")))
    )
  return { arranged, asOperator, everyWay, operate }
})

type Installation = Effect.Success<Effect.Success<typeof made>["arranged"]>
type Attack = readonly [
  name: string,
  scopes: ReadonlyArray<string>,
  (operate: RunningGateway.Operate, installation: Installation) => Promise<unknown>
]

const attacks: ReadonlyArray<Attack> = [
  [
    "the provider's address",
    ["providers:update"],
    (operate, { providerId, stranger }) => operate("PATCH", `/providers/${providerId}`, { base_url: stranger.origin })
  ],
  [
    "the provider's address and its header, in two calls",
    ["providers:update"],
    async (operate, { providerId, stranger }) => {
      await operate("PATCH", `/providers/${providerId}`, {
        credential_header_mode: "custom_header",
        credential_header_name: "x-k"
      })
      await operate("PATCH", `/providers/${providerId}`, { base_url: stranger.origin })
    }
  ],
  [
    "another provider in the place of the first",
    ["providers:update"],
    async (operate, { providerId, stranger }) => {
      await operate("DELETE", `/providers/${providerId}`)
      await operate("POST", "/providers", { provider: "upstream", name: "mine", base_url: stranger.origin })
    }
  ],
  [
    "the address, and the mappings confirmed without their credentials",
    ["providers:update", "usage:read"],
    async (operate, { providerId, stranger }) => {
      await operate("PATCH", `/providers/${providerId}`, { base_url: stranger.origin })
      const mappings = await operate("GET", "/providers/upstream-credentials")
      assert(Array.isArray(mappings))
      for (const mapping of mappings) {
        await operate("POST", "/providers/upstream-credentials", {
          scope: fieldOf(mapping, "scope"),
          target_id: fieldOf(mapping, "target_id"),
          enabled: true
        })
      }
    }
  ],
  [
    "the service's address",
    ["services:update"],
    (operate, { stranger }) => operate("PATCH", "/services/payments", { upstream_base_url: stranger.origin })
  ],
  [
    "the service's address, by way of none",
    ["services:update"],
    async (operate, { stranger }) => {
      await operate("PATCH", "/services/payments", { upstream_base_url: null })
      await operate("PATCH", "/services/payments", { upstream_base_url: stranger.origin })
    }
  ],
  [
    "the registry",
    ["services:update"],
    (operate, { stranger }) =>
      operate("POST", "/services/import/activate", {
        services: [{ name: "payments", upstream_base_url: stranger.origin, enabled: true }]
      })
  ],
  [
    "the registry of before",
    ["services:update"],
    (operate, { version }) => operate("POST", `/services/import/rollback/${version}`)
  ],
  [
    "the studio's address",
    ["settings:update"],
    (operate, { stranger }) => operate("PATCH", "/studio/connection", { base_url: `${stranger.origin}/studio` })
  ],
  [
    "the guardrail's address",
    ["guardrails:update"],
    (operate, { stranger }) => operate("PATCH", "/guardrails/watch", { endpoint_url: `${stranger.origin}/guard` })
  ],
  [
    "every address, by a document",
    ["*"],
    async (operate, { owner, stranger }) => {
      const exported: unknown = JSON.parse(
        JSON.stringify(await operate("GET", "/configuration")).replaceAll(owner.origin, stranger.origin)
      )
      const plan = await operate("POST", "/configuration/plan", exported)
      await operate("POST", "/configuration/apply", { base_hash: fieldOf(plan, "base_hash"), document: exported })
    }
  ]
]

describe("a stored secret stays with its address", () => {
  it.live("is used there, and read by nobody who may only change the address", () =>
    Effect.gen(function* () {
      const { arranged, asOperator, everyWay, operate } = yield* made
      const { owner, providerId } = yield* arranged
      yield* everyWay
      yield* operate("DELETE", `/providers/${providerId}`)
      yield* everyWay
      for (const secret of Object.values(secrets)) assert.include(owner.heard.join("\n\n"), secret)

      for (const [name, scopes, attack] of attacks) {
        const installation = yield* arranged
        const attacker = yield* asOperator(scopes)
        yield* Effect.promise(() => attack(attacker, installation))
        yield* everyWay
        const heard = installation.stranger.heard.join("\n\n")
        assert.isAbove(installation.stranger.heard.length, 0, `${name}: nothing is asked at the new address`)
        assert.notInclude(heard, "canary", name)
      }
    }).pipe(Effect.scoped)
  )

  it.live("no registered service leads to a listener of the process itself", () =>
    Effect.gen(function* () {
      // the simulator would answer for every address; the example opens the listener of statuses
      const environment = { UPSTREAM_BASE_URL: "http://127.0.0.1:9" }
      const gateway = yield* GatewayOnPostgres.start({ environment, example: true })
      const operate = (method: string, path: string, body?: unknown) =>
        Effect.promise(() => gateway.operate(method, path, body))
      const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      yield* operate("POST", "/services", { name: "inwards", allowed_methods: ["GET"] })
      for (const listener of [gateway.status, gateway.control, gateway.proxy]) {
        for (const host of ["127.0.0.1", "localhost", "127.1.2.3"]) {
          const upstream_base_url = listener.replace("127.0.0.1", host)
          yield* operate("PATCH", "/services/inwards", { upstream_base_url, credential: "canary" })
          const answer = yield* Calls.call(gateway, "/services/inwards/dlq/queues", key.raw)
          assert.strictEqual(answer.status, 502, `${upstream_base_url}: ${answer.text}`)
        }
      }
    }).pipe(Effect.scoped)
  )
})
