import Anthropic from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import OpenAI from "openai"
import { eventually } from "../Eventually.ts"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import { chat, hello } from "./Calls.ts"

/** Paths, and the headers that carry a credential, as the vendor had them. */
const heard = ({ requests }: SimulatorServer.SimulatorServer) =>
  requests.map(({ method, rawHeaders, url }) => [
    `${method} ${url}`,
    ...rawHeaders.flatMap((name, i) =>
      i % 2 === 0 && /^(?:authorization|x-api-key)$/i.test(name) ? [`${name}: ${rawHeaders[i + 1]}`] : []
    )
  ])

const Row = Schema.Struct({ id: Schema.String })
const rowOf = Schema.decodeUnknownSync(Row)

const HealthStates = Schema.Struct({
  results: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      status: Schema.String,
      circuit_state: Schema.String,
      last_error_code: Schema.NullOr(Schema.String)
    })
  )
})
const resultsOf = (json: unknown) =>
  Schema.decodeUnknownSync(HealthStates)(json).results.map(({ circuit_state, last_error_code, name, status }) => [
    name,
    status,
    last_error_code,
    circuit_state
  ])

const checksOf = (gateway: RunningGateway.RunningGateway) =>
  Effect.promise(async () => {
    const { checks } = JSON.parse(await (await fetch(`${gateway.control}/admin-ui/readyz`)).text())
    return [checks.upstream_openai, checks.upstream_anthropic]
  })

describe("two vendors behind one gateway", () => {
  it.live("each official client reaches its own vendor, with the vendor's credential alone", () =>
    Effect.gen(function* () {
      const openai = yield* SimulatorServer.serve({ below: "/openai" })
      const anthropic = yield* SimulatorServer.serve()
      const gateway = yield* GatewayOnPostgres.start({
        environment: {
          UPSTREAM_OPENAI_BASE_URL: `${openai.origin}/openai/v1`,
          UPSTREAM_OPENAI_SERVICE_KEY: "sk-of-openai",
          UPSTREAM_ANTHROPIC_BASE_URL: anthropic.origin,
          UPSTREAM_ANTHROPIC_SERVICE_KEY: "sk-ant-of-anthropic",
          LOG_LEVEL: "trace"
        }
      })
      const banner = new RegExp(
        `^  upstream +http \\(OpenAI: ${openai.origin}/openai/v1, Anthropic: ${anthropic.origin}/v1\\)$`,
        "m"
      )
      assert.match(gateway.output(), banner)
      assert.deepStrictEqual(yield* checksOf(gateway), ["UPSTREAM_OPENAI_BASE_URL", "UPSTREAM_ANTHROPIC_BASE_URL"])
      const { raw } = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      yield* Effect.promise(async () => {
        const a = new OpenAI({ apiKey: raw, baseURL: `${gateway.proxy}/v1`, maxRetries: 0 })
        const b = new Anthropic({ apiKey: raw, baseURL: gateway.proxy, maxRetries: 0 })
        const answer = await a.chat.completions.create({ model: "m", messages: hello.map(asUser) })
        assert.include(answer.choices[0]?.message.content ?? "", "hello there")
        await a.responses.create({ model: "m", input: "hello" })
        assert.isAbove((await a.models.list()).data.length, 0)
        const message = await b.messages.create({ model: "m", max_tokens: 16, messages: hello.map(asUser) })
        assert.strictEqual(message.type, "message")
        await b.messages.countTokens({ model: "m", messages: hello.map(asUser) })
        assert.isAbove((await b.models.list()).data.length, 0)
        // each vendor has its own word for a model that it does not have
        const refused = await Promise.allSettled([
          a.chat.completions.create({ model: "simulate-404", messages: hello.map(asUser) }),
          b.messages.create({ model: "simulate-404", max_tokens: 16, messages: hello.map(asUser) })
        ])
        assert.deepStrictEqual(
          refused.map((one) => one.status === "rejected" && [one.reason.constructor, one.reason.status]),
          [
            [OpenAI.NotFoundError, 404],
            [Anthropic.NotFoundError, 404]
          ]
        )
      })
      const bearer = "authorization: Bearer sk-of-openai"
      assert.deepStrictEqual(heard(openai), [
        ["POST /openai/v1/chat/completions", bearer],
        ["POST /openai/v1/responses", bearer],
        ["GET /openai/v1/models", bearer],
        ["POST /openai/v1/chat/completions", bearer]
      ])
      const header = "x-api-key: sk-ant-of-anthropic"
      assert.deepStrictEqual(heard(anthropic), [
        ["POST /v1/messages", header],
        ["POST /v1/messages/count_tokens", header],
        ["GET /v1/models", header],
        ["POST /v1/messages", header]
      ])
      const results = resultsOf(yield* Effect.promise(() => gateway.operate("POST", "/provider-health/check")))
      assert.notMatch(gateway.output(), /sk-of-openai|sk-ant-of-anthropic/)
      assert.sameDeepMembers(results, [
        ["UPSTREAM_OPENAI_BASE_URL", "healthy", null, "closed"],
        ["UPSTREAM_ANTHROPIC_BASE_URL", "healthy", null, "closed"]
      ])
    })
  )
})

const asUser = ({ content }: { readonly content: string }) => ({ role: "user" as const, content })

describe("a provider row", () => {
  it.live("takes the simulator's place as soon as there is one, below its own path, and the log says so", () =>
    Effect.gen(function* () {
      const vendor = yield* SimulatorServer.serve({ below: "/api" })
      const gateway = yield* GatewayOnPostgres.start({})
      const operate = (method: string, path: string, body?: unknown) =>
        Effect.promise(() => gateway.operate(method, path, body))
      const { raw } = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      assert.match(gateway.output(), /^ {2}upstream +simulator \(simulated responses until a provider is stored/m)
      assert.deepStrictEqual(yield* checksOf(gateway), ["simulator", "simulator"])
      assert.strictEqual((yield* chat(gateway, raw)).status, 200)
      assert.deepStrictEqual(vendor.requests, [])

      const base_url = `${vendor.origin}/api/v1`
      const row = rowOf(
        yield* operate("POST", "/providers", { provider: "upstream", name: "main", base_url, credential: "sk-main" })
      )
      yield* eventually(
        Effect.map(chat(gateway, raw), ({ status }) => [status, vendor.requests.length]),
        ([status, requests]) => status === 200 && requests === 1
      )
      assert.deepStrictEqual(heard(vendor), [["POST /api/v1/chat/completions", "authorization: Bearer sk-main"]])
      assert.deepStrictEqual(yield* checksOf(gateway), ["provider_row", "provider_row"])
      yield* eventually(Effect.sync(gateway.output), (output) => output.includes("a provider row defines the upstream"))
      assert.deepStrictEqual(resultsOf(yield* operate("POST", "/provider-health/check")), [
        ["main", "healthy", null, "closed"]
      ])

      yield* operate("DELETE", `/providers/${row.id}`)
      yield* eventually(checksOf(gateway), ([openai]) => openai === "simulator")
      const asked = vendor.requests.length
      assert.strictEqual((yield* chat(gateway, raw)).status, 200)
      assert.strictEqual(vendor.requests.length, asked)
    })
  )

  it.live("without a credential is refused by name, and the simulator's is not sent anywhere", () =>
    Effect.gen(function* () {
      const vendor = yield* SimulatorServer.serve()
      const gateway = yield* GatewayOnPostgres.start({})
      const { raw } = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      const body = { provider: "upstream", name: "main", base_url: vendor.origin }
      yield* Effect.promise(() => gateway.operate("POST", "/providers", body))
      const refused = yield* eventually(chat(gateway, raw), ({ status }) => status === 500)
      assert.include(refused.text, "No upstream credential is configured")
      assert.deepStrictEqual(vendor.requests, [])
    })
  )

  it.live("is needed where the simulator was turned off by the flag and the environment names no upstream", () =>
    Effect.gen(function* () {
      const gateway = yield* GatewayOnPostgres.start({ flags: ["--upstream", "http"] })
      assert.match(gateway.output(), /^ {2}upstream +http \(none until a provider is stored\)$/m)
      const { raw } = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      const refused = yield* chat(gateway, raw)
      assert.strictEqual(refused.status, 500)
      assert.include(refused.text, "No upstream for OpenAI requests is configured")
      assert.deepStrictEqual(yield* checksOf(gateway), ["none", "none"])
    })
  )

  it.live("does not count where the simulator was asked for by its flag", () =>
    Effect.gen(function* () {
      const vendor = yield* SimulatorServer.serve()
      const gateway = yield* GatewayOnPostgres.start({ flags: ["--upstream", "simulator"] })
      const { raw } = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      const body = { provider: "upstream", name: "main", base_url: vendor.origin, credential: "sk-main" }
      yield* Effect.promise(() => gateway.operate("POST", "/providers", body))
      yield* eventually(checksOf(gateway), ([openai]) => openai === "provider_row")
      assert.strictEqual((yield* chat(gateway, raw)).status, 200)
      assert.deepStrictEqual(vendor.requests, [])
    })
  )
})
