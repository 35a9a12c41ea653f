import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { eventually } from "../Eventually.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { chat } from "./Calls.ts"

const Line = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))
const decode = Schema.decodeUnknownSync(Line)

/** The lines of the log; the banner is none. */
const linesOf = ({ output }: RunningGateway.RunningGateway) =>
  output()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => decode(line))

const requestsOf = (gateway: RunningGateway.RunningGateway) =>
  linesOf(gateway).filter(({ message }) => message === "request")

const lines = (gateway: RunningGateway.RunningGateway, count: number) =>
  eventually(
    Effect.sync(() => requestsOf(gateway)),
    (found) => found.length >= count
  )

const isEmpty = (value: unknown) =>
  value === "" || value === null || (typeof value === "object" && Object.keys(value).length === 0)

describe("the log of a process", () => {
  it.live("has a line for each request and each denial, in one shape, without what is secret", () =>
    Effect.gen(function* () {
      const gateway = yield* RunningGateway.start({ environment: { LOG_LEVEL: "info" } })
      yield* Effect.promise(() => gateway.operate("PUT", "/model-prices/gpt-5-mini", price))
      const project = yield* Effect.promise(() => gateway.operate("POST", "/projects", { name: "search" }))
      const key = yield* Effect.promise(() =>
        RunningGateway.createKey(gateway, {
          owner_type: "project",
          project_id: idOf(project).id,
          policy: { allowed_models: ["gpt-5-mini"] }
        })
      )
      const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
      const ask = (target: string, model: string, authorization: string) =>
        Effect.promise(() =>
          fetch(gateway.proxy + target, {
            method: "POST",
            headers: {
              authorization,
              "content-type": "application/json",
              "x-request-id": 'say-"so"',
              traceparent: `00-${trace}-00f067aa0ba902b7-01`
            },
            body: JSON.stringify({ model, messages: [{ role: "user", content: "canary-body" }] })
          }).then(async (answer) => [answer.status, await answer.text()] as const)
        )
      const mine = `Bearer ${key.raw}`
      const stranger = `Bearer rk_live_${"0".repeat(72)}`
      const answers = [
        yield* ask("/v1/chat/completions?canary-query=1", "gpt-5-mini", mine),
        yield* ask("/v1/chat/completions", "gpt-5", mine),
        yield* ask("/v1/chat/completions", "gpt-5-mini", stranger),
        yield* ask(`/v1/nowhere/${key.raw}`, "gpt-5-mini", mine)
      ]
      assert.deepStrictEqual(
        answers.map(([status]) => status),
        [200, 403, 401, 404]
      )
      const found = yield* lines(gateway, 4)
      const common = { level: "INFO", role: "all", method: "POST", request_id: 'say-"so"', trace_id: trace }
      const prefix = key.raw.slice(0, 16)
      const route = { path: "/v1/chat/completions", route: "/v1/chat/completions", provider: "upstream" }
      const [answered, denied, unknown, nowhere] = found
      assert.deepInclude(answered, { ...common, ...route, status: 200, model: "gpt-5-mini", project: "search" })
      assert.deepInclude(answered, { key_prefix: prefix })
      for (const field of ["latency_ms", "upstream_ms", "own_ms", "input_tokens", "output_tokens", "cost_usd"]) {
        assert.isNumber(answered?.[field], field)
      }
      assert.deepInclude(denied, { ...common, ...route, status: 403, code: "policy_denied", model: "gpt-5" })
      assert.deepInclude(denied, { key_prefix: prefix })
      assert.deepInclude(unknown, { ...common, ...route, status: 401, code: "invalid_virtual_key" })
      assert.notProperty(unknown, "key_prefix")
      assert.deepInclude(nowhere, { status: 404, code: "unsupported_route", path: `/v1/nowhere/${prefix}…` })
      assert.notInclude(gateway.output(), "canary")
      assert.notInclude(gateway.output(), key.raw.slice(0, 20))

      const all = linesOf(gateway)
      for (const line of all) {
        assert.isString(line["message"])
        assert.isString(line["timestamp"])
        assert.deepStrictEqual(
          Object.entries(line).filter(([, value]) => isEmpty(value)),
          []
        )
      }
    })
  )

  it.live("has no line for requests where GATEWAY_ACCESS_LOG or LOG_LEVEL says so", () =>
    Effect.gen(function* () {
      const environments = [{ GATEWAY_ACCESS_LOG: "false", LOG_LEVEL: "info" }, { LOG_LEVEL: "gateway_proxy=warn" }]
      for (const environment of environments) {
        const gateway = yield* RunningGateway.start({ environment })
        const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
        assert.strictEqual((yield* chat(gateway, key.raw)).status, 200)
        gateway.signal("SIGTERM")
        // what was gathered is written by then
        yield* Effect.promise(() => gateway.exited)
        assert.deepStrictEqual(requestsOf(gateway), [])
        assert.include(gateway.output(), '"message":"The process is draining: readiness is false')
      }
    })
  )
})

const price = { input_usd_per_million: 1, output_usd_per_million: 2 }

const idOf = Schema.decodeUnknownSync(Schema.Struct({ id: Schema.String }))
