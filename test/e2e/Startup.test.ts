import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { eventually } from "../Eventually.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as TemporaryData from "../TemporaryData.ts"
import { chat } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

const printedToken = /op_live_[0-9a-f]+/g
const noAdminToken = { GATEWAY_ADMIN_TOKEN: "" }

/** Operator tokens that a process printed. */
const printed = ({ output }: Pick<RunningGateway.RunningGateway, "output">): ReadonlyArray<string> =>
  output().match(printedToken) ?? []

const stop = (gateway: RunningGateway.RunningGateway) =>
  Effect.promise(() => {
    gateway.signal("SIGTERM")
    return gateway.exited
  })

describe("start-up: one command, and nothing set", () => {
  it.live("prints a token, and with a key that it makes a model answers offline", () =>
    Effect.gen(function* () {
      const gateway = yield* RunningGateway.start({ environment: noAdminToken, types: "tsx" })
      assert.match(gateway.output(), /database +embedded .*lost at exit/)
      assert.match(gateway.output(), /redis +memory .*lost at exit/)
      assert.match(gateway.output(), /upstream +simulator/)
      const [token = "", ...others] = printed(gateway)
      assert.deepStrictEqual(others, [])
      const operator = { ...gateway, operate: gateway.operateAs(token) }
      const key = yield* Effect.promise(() => RunningGateway.createKey(operator))
      const answer = yield* chat(gateway, key.raw)
      assert.strictEqual(answer.status, 200)
      assert.include(answer.text, "hello there")
    })
  )
})

describe("start-up: a data directory", () => {
  it.live("keeps keys after kill -9, and a second process is refused", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const options = { adminToken: RunningGateway.newAdminToken(), flags: ["--data", path], example: true }
      const first = yield* RunningGateway.start(options)
      assert.match(first.output(), /database +embedded .*kept in .*\/database, also after kill -9/)
      assert.match(first.output(), /redis +memory .*kept in .*\/redis, also after kill -9; a power cut may lose/)
      assert.match(first.output(), /broker +memory .*kept in .*\/broker, also after kill -9; a power cut may lose/)
      const key = yield* Effect.promise(() => RunningGateway.createKey(first))
      const second = RunningGateway.launch({ environment: { SVC_DATA_DIR: path } })
      assert.strictEqual(yield* Effect.promise(() => second.exited), 1)
      assert.include(
        second.output(),
        `The data directory ${path} is in use by another svc-runtime (process ${first.pid}`
      )
      first.signal("SIGKILL")
      yield* Effect.promise(() => first.exited)
      const again = yield* RunningGateway.start(options)
      assert.strictEqual((yield* chat(again, key.raw)).status, 200)
    })
  )

  it.live.skipIf(!Deployment.available)("has no effect where only real servers are used, and a warning says so", () =>
    Effect.gen(function* () {
      const deployment = yield* Deployment.make({ environment: { SVC_DATA_DIR: "/nonexistent/data" } })
      const gateway = yield* deployment.start()
      assert.include(gateway.output(), "SVC_DATA_DIR is set but has no effect, because the role uses only real servers")
    })
  )
})

describe("start-up: the studio of the environment", () => {
  it.live("is in force until another one is stored; its token is not shown", () =>
    Effect.gen(function* () {
      const environment = { SVC_STUDIO_BASE_URL: "http://127.0.0.1:9/studio/", SVC_STUDIO_TOKEN: "canary-studio" }
      const gateway = yield* RunningGateway.start({ environment })
      const shown = yield* Effect.promise(() => gateway.operate("GET", "/studio/connection"))
      assert.deepInclude(shown, {
        base_url: "http://127.0.0.1:9/studio",
        token_configured: true,
        source: "environment"
      })
      const stored = yield* Effect.promise(() =>
        gateway.operate("PATCH", "/studio/connection", { base_url: "http://127.0.0.1:10" })
      )
      assert.deepInclude(stored, { base_url: "http://127.0.0.1:10", token_configured: false, source: "persisted" })
      assert.notInclude(gateway.output() + JSON.stringify([shown, stored]), "canary")
    })
  )
})

describe.skipIf(!Deployment.available)("start-up: a role", () => {
  it.live.each(["gateway", "control"] as const)("%s: names the doors that it goes through", (role) =>
    Effect.gen(function* () {
      const deployment = yield* Deployment.make({
        environment: {
          UPSTREAM_BASE_URL: "http://upstream.invalid",
          UPSTREAM_ANTHROPIC_BASE_URL: "http://anthropic.invalid/proxy"
        }
      })
      const banner = (yield* deployment.start({ role })).output()
      assert.match(banner, /^ {2}database +postgres/m)
      assert.match(banner, /^ {2}redis +ioredis/m)
      // control asks it, and what else is registered, whether it lives
      assert.match(
        banner,
        /^ {2}upstream +http \(http:\/\/upstream\.invalid\/v1, Anthropic: http:\/\/anthropic\.invalid\/proxy\/v1\)$/m
      )
      for (const variable of ["UPSTREAM_SERVICE_KEY", "UPSTREAM_ANTHROPIC_SERVICE_KEY"]) {
        assert.strictEqual(banner.includes(`${variable} is not set`), role === "gateway")
      }
    })
  )
})

describe("start-up: the example", () => {
  it.live("runs where it is asked for, without a real server", () =>
    Effect.gen(function* () {
      const gateway = yield* RunningGateway.start({ example: true })
      assert.match(gateway.output(), /^ {2}broker +memory/m)
      assert.isNotEmpty(gateway.status)
      yield* eventually(
        Effect.sync(() => gateway.output()),
        (output) => output.includes("The example publishes book-"),
        "30 seconds"
      )
    })
  )

  it.live.skipIf(!Deployment.available)("does not run by default, and keeps nothing on the servers", () =>
    Effect.gen(function* () {
      const deployment = yield* Deployment.make({ environment: { RABBITMQ_URL: "amqp://127.0.0.1:1" } })
      const gateway = yield* deployment.start()
      assert.match(
        gateway.output(),
        /^ {2}tasks +none: --tasks \.\/tasks\.ts runs those of a module, --example shows an example's$/m
      )
      assert.notMatch(gateway.output(), /^ {2}(broker|status) /m)
      // one answer, so that the process is at work
      assert.strictEqual((yield* Effect.promise(() => fetch(`${gateway.control}/admin-ui/readyz`))).status, 200)
      assert.deepStrictEqual(yield* deployment.redis("KEYS", deployment.key("*example*")), [])
      gateway.signal("SIGTERM")
      assert.strictEqual(yield* Effect.promise(() => gateway.exited), 0)
      assert.notInclude(gateway.output(), "The example")
    })
  )

  it.live.skipIf(!Deployment.available)("runs on real servers where it is asked for", () =>
    Effect.gen(function* () {
      const deployment = yield* Deployment.make()
      const gateway = yield* deployment.start({ example: true })
      assert.match(gateway.output(), /^ {2}broker +memory/m)
      yield* eventually(
        Effect.sync(() => gateway.output()),
        (output) => output.includes("The example publishes book-"),
        "30 seconds"
      )
    })
  )
})

describe("start-up: LOG_LEVEL", () => {
  it.live("is that of all parts, where it names none", () =>
    Effect.gen(function* () {
      const silent = yield* RunningGateway.start({ environment: { LOG_LEVEL: "off" } })
      silent.signal("SIGTERM")
      assert.strictEqual(yield* Effect.promise(() => silent.exited), 0)
      assert.notMatch(silent.output(), /^\{/m)
    })
  )
})

describe.skipIf(!Deployment.available)("start-up: the operator token", () => {
  const Token = Schema.Struct({ hash: Schema.String, row: Schema.String })
  const tokens = `SELECT encode(token_hash, 'hex') AS hash, row_to_json(t)::text AS row FROM operator_tokens t`

  it.live("is taken from GATEWAY_ADMIN_TOKEN, kept as a hash alone and never printed", () =>
    Effect.gen(function* () {
      const deployment = yield* Deployment.make()
      const gateway = yield* deployment.start({ environment: { LOG_LEVEL: "trace" } })
      yield* Effect.promise(() => gateway.operate("GET", "/keys"))
      assert.notInclude(gateway.output(), deployment.adminToken)
      assert.deepStrictEqual(printed(gateway), [])
      const [stored, ...others] = yield* deployment.rows(Token, tokens)
      assert.deepStrictEqual(others, [])
      assert.strictEqual(stored?.hash, createHash("sha256").update(deployment.adminToken).digest("hex"))
      assert.notInclude(stored?.row, deployment.adminToken)
    })
  )

  it.live("once there is one, another GATEWAY_ADMIN_TOKEN is ignored, and so is none", () =>
    Effect.gen(function* () {
      const deployment = yield* Deployment.make()
      yield* Effect.flatMap(deployment.start(), stop)
      const other = RunningGateway.newAdminToken()
      const again = yield* deployment.start({ environment: { GATEWAY_ADMIN_TOKEN: other } })
      yield* Effect.promise(() => again.operate("GET", "/keys"))
      const refused = yield* Effect.promise(() =>
        fetch(`${again.control}/admin-ui/admin/keys`, { headers: { authorization: `Bearer ${other}` } })
      )
      assert.strictEqual(refused.status, 401)
      yield* stop(again)
      yield* Effect.flatMap(deployment.start({ environment: { GATEWAY_ADMIN_TOKEN: "no token at all" } }), stop)
      const unset = yield* deployment.start({ environment: noAdminToken })
      yield* Effect.promise(() => unset.operate("GET", "/keys"))
      assert.deepStrictEqual(printed(unset), [])
      assert.strictEqual((yield* deployment.rows(Token, tokens)).length, 1)
    })
  )

  it.live("of two processes that start at once on an empty database, both are up and one prints the token", () =>
    Effect.gen(function* () {
      const deployment = yield* Deployment.make()
      const start = deployment.start({ environment: noAdminToken })
      const both = yield* Effect.all([start, start], { concurrency: 2 })
      const [token = "", ...others] = both.flatMap(printed)
      assert.deepStrictEqual(others, [])
      for (const gateway of both) yield* Effect.promise(() => gateway.operateAs(token)("GET", "/keys"))
      assert.strictEqual((yield* deployment.rows(Token, tokens)).length, 1)
    })
  )
})

describe.skipIf(!Deployment.available)("start-up: the database", () => {
  it.live("when it is empty, it is brought up to date, with pii-redact enabled and not default-on", () =>
    Effect.gen(function* () {
      const deployment = yield* Deployment.make()
      yield* deployment.start()
      const Guardrail = Schema.Struct({ name: Schema.String, enabled: Schema.Boolean, default_on: Schema.Boolean })
      const seeded = yield* deployment.rows(Guardrail, "SELECT name, enabled, default_on FROM guardrail_definitions")
      assert.deepStrictEqual(seeded, [{ name: "pii-redact", enabled: true, default_on: false }])
    })
  )

  it.live("carries keys, routes, provider rows and usage over a restart", () =>
    Effect.gen(function* () {
      const deployment = yield* Deployment.make()
      const first = yield* deployment.start()
      const key = yield* Effect.promise(() => RunningGateway.createKey(first, { policy: { daily_budget_usd: 1 } }))
      yield* Effect.promise(() => first.operate("PATCH", "/family-b-routes/messages/config", { timeout_ms: 4321 }))
      assert.strictEqual((yield* chat(first, key.raw)).status, 200)
      const paths = ["/keys", "/family-a-routes", "/family-b-routes", "/providers", "/usage/summary", "/audit-events"]
      // every start sums up usage, to a later time
      const lasting = (name: string, value: unknown) => (name === "spend_until" ? undefined : value)
      const state = (gateway: RunningGateway.RunningGateway) =>
        Effect.promise(async () =>
          JSON.stringify(await Promise.all(paths.map((path) => gateway.operate("GET", path))), lasting, 1)
        )
      yield* deployment.recorded(key.id, 1)
      const before = yield* state(first)
      assert.strictEqual(yield* stop(first), 0)
      const second = yield* deployment.start()
      assert.strictEqual(yield* state(second), before)
      assert.strictEqual((yield* chat(second, key.raw)).status, 200)
      assert.strictEqual((yield* deployment.recorded(key.id, 2)).length, 2)
    })
  )
})
