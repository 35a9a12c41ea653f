import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Logger, Tracer } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import type { ErrorCode } from "../../src/gateway/GatewayError.ts"
import { Database } from "../../src/services/Database.ts"
import { UpstreamError } from "../../src/services/Upstream.ts"
import * as Proxy from "./Proxy.ts"
import * as RecordingWire from "./RecordingWire.ts"
import * as Upstream from "./ScriptedUpstream.ts"

layer(Proxy.database)("ProxyApp and an upstream", (it) => {
  it.effect.each<Failure>([
    [
      "connect",
      "refused",
      502,
      "upstream_connection",
      "The upstream could not be reached. Try again shortly, or ask an operator to check the upstream."
    ],
    [
      "connect",
      "busy",
      503,
      "gateway_overloaded",
      "All connections that the gateway may have to this upstream are busy, and none became free in time. Try again shortly."
    ],
    [
      "connect",
      "timeout",
      504,
      "upstream_timeout",
      "The upstream did not accept a connection within 7000 ms (timeout_ms of the route). Try again, or ask an operator to raise the limit."
    ],
    [
      "headers",
      "timeout",
      504,
      "upstream_timeout",
      "The upstream did not begin its response within 7000 ms (timeout_ms of the route). Try again, or ask an operator to raise the limit."
    ],
    [
      "headers",
      "reset",
      502,
      "upstream_connection",
      "The upstream closed the connection before its response was complete. Try again."
    ],
    [
      "headers",
      "malformed",
      502,
      "upstream_connection",
      "The upstream's response is not valid HTTP. Ask an operator to check the upstream."
    ]
  ])("that fails before it answers (%s, %s): %d %s, nothing billed", ([phase, reason, status, code, message]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstream: Upstream.fails(phase, reason),
        configured: Proxy.configureRoute("chat-completions", { timeoutMs: 7000 })
      })
      const key = yield* Proxy.issueKey({ daily_budget_usd: 1, tpm_limit: 100 })
      const wire = yield* gateway.ask({
        target: Proxy.chat,
        headers: key.headers,
        body: { user: "abcdefgh", max_tokens: 50 }
      })
      const { error } = JSON.parse(wire.text)
      assert.deepStrictEqual([wire.status, error.code, error.message, wire.ending], [status, code, message, "whole"])
      const [record, ...more] = yield* gateway.records
      assert.lengthOf(more, 0)
      assert.deepInclude(record, {
        status_code: status,
        error_code: code,
        cost_nanos: null,
        usage_source: "status_only"
      })
      // what was reserved is free again
      const next = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { max_tokens: 100 } })
      assert.deepStrictEqual([next.status, next.header("x-ratelimit-remaining-tokens")], [status, "0"])
    })
  )

  it.effect("to which no connection is free: the client learns the limit and when to come back, in its own shape", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstream: () => new UpstreamError({ phase: "connect", reason: "busy", limit: 1024 })
      })
      const key = yield* Proxy.issueKey()
      const before = yield* bodiesRefused
      const wires = yield* Effect.forEach([Proxy.chat, Proxy.messages], (target) =>
        gateway.ask({ target, headers: key.headers, body: { max_tokens: 5 } })
      )
      for (const wire of wires) {
        assert.deepStrictEqual([wire.status, wire.header("retry-after")], [503, "1"])
        const { error } = JSON.parse(wire.text)
        assert.deepStrictEqual([error.code, error.retry_after_seconds], ["gateway_overloaded", 1])
        assert.match(error.message, /^All 1024 connections that the gateway may have to this upstream are busy/)
      }
      assert.strictEqual(JSON.parse(wires[1]?.text ?? "").error.type, "overloaded_error")
      // the code is shared with bodies that had no room, and the counter of those is not
      assert.strictEqual(yield* bodiesRefused, before)
    })
  )

  it.effect.each<readonly [UpstreamError["reason"], ErrorCode]>([
    ["reset", "upstream_connection"],
    ["timeout", "upstream_timeout"],
    ["malformed", "upstream_connection"]
  ])("that fails in its answer (%s): the client sees that it is cut, and pays for what passed", ([reason, code]) =>
    Effect.gen(function* () {
      const begun = Upstream.events('data: {"choices":[{}]}\n\n', 'data: {"choices":[{}]}\n\n', "data: {")
      const gateway = yield* Proxy.make({ upstream: Upstream.fails("body", reason, begun) })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({
        target: Proxy.chat,
        headers: key.headers,
        body: { stream: true, user: "abcdefgh" }
      })
      assert.deepStrictEqual([wire.status, wire.ending], [200, "cut"])
      assert.include(wire.text, 'data: {"choices":[{}]}\n\n')
      assert.deepStrictEqual(gateway.journal.slice(-2), ["settlement", "cut"])
      assert.deepInclude((yield* gateway.records)[0], {
        status_code: 200,
        error_code: code,
        usage_source: "estimated",
        input_tokens: 3,
        output_tokens: 2
      })
    })
  )

  it.effect("whose answer says that it is too large: refused before the client sees anything of it", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.answers(200, ["content-length", "101"], "x".repeat(101)) })
      const key = yield* Proxy.issueKey({ max_response_body_bytes: 100 })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
      assert.deepStrictEqual([wire.status, JSON.parse(wire.text).error.code], [413, "response_body_too_large"])
      assert.include(wire.text, "larger than 100 bytes (max_response_body_bytes of this key's policy)")
      assert.deepInclude((yield* gateway.records)[0], {
        status_code: 413,
        error_code: "response_body_too_large",
        usage_source: "estimated",
        cost_nanos: 10_000_000
      })
    })
  )

  it.effect.each([
    ["passed on", {}],
    ["held for a guardrail", { guardrails: { mandatory_guardrails: ["pii-redact"] } }]
  ] as const)(
    "whose answer says that it is too large is paid for, or a budget would never be used up: %s",
    ([_, guarded]) =>
      Effect.gen(function* () {
        const answer = Upstream.json({ choices: [], said: "x".repeat(2_000_000) })
        const gateway = yield* Proxy.make({ upstream: answer, configured: priced })
        const key = yield* Proxy.issueKey({ daily_budget_usd: 0.003 }, guarded)
        const body = { model: "large", max_tokens: 1000 }
        const statuses = yield* Effect.replicateEffect(
          Effect.map(gateway.ask({ target: Proxy.chat, headers: key.headers, body }), ({ status }) => status),
          2
        )
        assert.deepStrictEqual(statuses, [413, 402])
        const [record] = yield* gateway.records
        assert.deepInclude(record, {
          status_code: 413,
          error_code: "response_body_too_large",
          usage_source: "estimated",
          // no answer is taken for longer than it was allowed to be
          output_tokens: 1000,
          cost_source: "price_table"
        })
      })
  )

  it.effect("that refuses with more than the limit is had for nothing", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.json({ error: "x".repeat(2_000_000) }, 400) })
      const key = yield* Proxy.issueKey({ daily_budget_usd: 0.01 })
      yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
      assert.deepInclude((yield* gateway.records)[0], { status_code: 413, cost_nanos: null })
    })
  )

  it.effect("whose answer turns out too large: cut at the limit, under the status that was sent", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstream: Upstream.answers(200, [], "x".repeat(60), "x".repeat(40), "y"),
        configured: Proxy.configureRoute("chat-completions", { responseBytes: 100 })
      })
      const key = yield* Proxy.issueKey({ max_response_body_bytes: 5000 })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
      assert.deepStrictEqual([wire.status, wire.ending, wire.text.length], [200, "cut", 100])
      assert.deepInclude((yield* gateway.records)[0], { status_code: 200, error_code: "response_body_too_large" })
    })
  )

  it.effect("that streams more than the route allows by default: whole, for no operator has set that limit", () =>
    Effect.gen(function* () {
      const events = Array.from({ length: 12 }, () => `data: ${"x".repeat(100_000)}\n\n`)
      const gateway = yield* Proxy.make({ upstream: Upstream.events(...events) })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { stream: true } })
      assert.deepStrictEqual([wire.status, wire.ending, wire.text], [200, "whole", events.join("")])
      assert.deepInclude((yield* gateway.records)[0], { status_code: 200, error_code: null })
    })
  )

  it.effect.each([
    ["behind an event", ["data: 1\n\n", "data: 2\n\n"], "data: 1\n\n"],
    ["behind an event with carriage returns", ["data: 1\r\n\r\n", "data: 2\r\n\r\n"], "data: 1\r\n\r\n"],
    ["in the middle of an event", ["data: 1\n\ndata", ": 2\n\n"], "data: 1\n\ndata\n\n"]
  ] as const)("that streams more than an operator allows: ends with an error event, %s", ([_, events, before]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstream: Upstream.events(...events),
        configured: Proxy.configureRoute("responses", { responseBytes: 14 })
      })
      const key = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: "/v1/responses", headers: key.headers, body: { stream: true } })
      assert.deepStrictEqual([wire.status, wire.ending], [200, "whole"])
      assert.isTrue(wire.text.startsWith(`${before}data: {"error":{"message":"The response is larger than 14 bytes`))
      assert.deepInclude((yield* gateway.records)[0], { status_code: 200, error_code: "response_body_too_large" })
    })
  )

  it.effect("that a limit cuts: a line of the log says so, without a word of it", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      yield* Effect.gen(function* () {
        const gateway = yield* Proxy.make({ upstream: Upstream.events("data: 1\n\n", "data: canary\n\n") })
        const key = yield* Proxy.issueKey({ max_response_body_bytes: 14 })
        yield* gateway.ask({ target: "/v1/responses", headers: key.headers, body: { stream: true } })
      }).pipe(Effect.provide(Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))])))
      const said = lines.filter((line) => line.includes("response cut off"))
      assert.lengthOf(said, 1)
      assert.include(said[0], "response_body_too_large")
      assert.notInclude(lines.join("\n"), "canary")
    })
  )

  it.effect("that streams too much in a form that no event of the gateway fits into: cut", () =>
    Effect.gen(function* () {
      const cases = [
        ["content-encoding", "br"],
        ["content-length", "10"]
      ] as const
      for (const header of cases) {
        const gateway = yield* Proxy.make({
          upstream: Upstream.answers(
            200,
            ["content-type", "text/event-stream", ...header],
            "data: 1\n\n",
            "data: 2\n\n"
          ),
          configured: Proxy.configureRoute("chat-completions", { responseBytes: 14 })
        })
        const key = yield* Proxy.issueKey()
        const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { stream: true } })
        assert.deepStrictEqual([wire.status, wire.ending, wire.text], [200, "cut", "data: 1\n\n"])
      }
    })
  )

  it.effect("that is in the middle when the client leaves: stopped, cut, and billed for what passed", () =>
    Effect.gen(function* () {
      const begun = Upstream.events('data: {"choices":[{}]}\n\n', 'data: {"choices":[{}]}\n\n')
      const gateway = yield* Proxy.make({ upstream: Upstream.hangs(begun) })
      const key = yield* Proxy.issueKey({ tpm_limit: 1000 })
      const wire = RecordingWire.make({
        target: Proxy.chat,
        headers: key.headers,
        body: { stream: true, max_tokens: 900 }
      })
      const asking = yield* Effect.forkChild(gateway.handle(wire))
      yield* Effect.repeat(Effect.yieldNow, { until: () => wire.text.length > 0 })
      yield* Fiber.interrupt(asking)
      assert.strictEqual(wire.ending, "cut")
      assert.deepInclude((yield* gateway.records)[0], {
        status_code: 200,
        error_code: null,
        usage_source: "estimated",
        output_tokens: 1
      })
    })
  )

  it.effect("that has not answered when the client leaves: billed for the input, recorded as 499, never answered", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.hangs() })
      const key = yield* Proxy.issueKey({ tpm_limit: 1000 })
      const wire = RecordingWire.make({ target: Proxy.chat, headers: key.headers, body: { user: "abcdefgh" } })
      const asking = yield* Effect.forkChild(gateway.handle(wire))
      yield* Effect.repeat(Effect.yieldNow, { until: () => gateway.sent.length === 1 })
      yield* Fiber.interrupt(asking)
      assert.isUndefined(wire.status)
      assert.deepInclude((yield* gateway.records)[0], {
        status_code: 499,
        error_code: null,
        usage_source: "estimated",
        input_tokens: 2,
        output_tokens: 0
      })
    })
  )

  it.effect("that answers faster than the client takes: waits for it", () =>
    Effect.gen(function* () {
      const flows: Array<string> = []
      const gateway = yield* Proxy.make({
        upstream: (sink) =>
          Effect.sync(() => {
            sink.head(200, [])
            sink.onDrain(() => flows.push("resumed"))
            flows.push(sink.chunk(Buffer.from("a")))
          })
      })
      const key = yield* Proxy.issueKey()
      yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {}, slow: true })
      assert.deepStrictEqual(flows, ["resumed", "pause"])
    })
  )

  it.effect("is asked nothing while Redis, which must admit, is gone; a key without limits does not need it", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const [limited, unlimited] = [yield* Proxy.issueKey({ rpm_limit: 5 }), yield* Proxy.issueKey()]
      yield* gateway.redisGoes
      const refused = yield* gateway.ask({ target: Proxy.chat, headers: limited.headers, body: {} })
      assert.deepStrictEqual(
        [refused.status, JSON.parse(refused.text).error.code, refused.header("retry-after")],
        [503, "control_state_unavailable", "1"]
      )
      assert.strictEqual((yield* gateway.ask({ target: Proxy.chat, headers: unlimited.headers, body: {} })).status, 200)
      assert.lengthOf(gateway.sent, 1)
      assert.deepStrictEqual(yield* gateway.records, [])
      yield* gateway.redisReturns
      yield* TestClock.adjust("2 seconds")
      const records = yield* gateway.records
      assert.sameMembers(
        records.map(({ key_id, status_code }) => `${key_id} ${status_code}`),
        [`${limited.id} 503`, `${unlimited.id} 200`]
      )
    })
  )

  it.effect("whose answer is under way when Redis goes: the client has all of it, and the record comes later", () =>
    Effect.gen(function* () {
      let outage: Effect.Effect<void> = Effect.void
      const answer = Upstream.json({ usage: { prompt_tokens: 5, completion_tokens: 6 } })
      const gateway = yield* Proxy.make({
        upstream: (sink, request) => Effect.suspend(() => Effect.andThen(outage, answer(sink, request)))
      })
      outage = gateway.redisGoes
      const { headers } = yield* Proxy.issueKey({ tpm_limit: 1000 })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers, body: { max_tokens: 900 } })
      assert.deepStrictEqual([wire.status, wire.ending], [200, "whole"])
      outage = Effect.void
      yield* gateway.redisReturns
      yield* TestClock.adjust("2 seconds")
      assert.deepInclude((yield* gateway.records)[0], { total_tokens: 11, status_code: 200 })
      const next = yield* gateway.ask({ method: "GET", target: "/v1/models", headers })
      assert.strictEqual(next.header("x-ratelimit-remaining-tokens"), "989")
    })
  )

  it.effect(
    "and a Redis that is gone: an outage writes a line a second for each cause, not some for each request",
    () =>
      Effect.gen(function* () {
        const lines: Array<string> = []
        yield* Effect.gen(function* () {
          const gateway = yield* Proxy.make({
            upstream: Upstream.json({ usage: { prompt_tokens: 1, completion_tokens: 1 } })
          })
          const { headers } = yield* Proxy.issueKey({ tpm_limit: 100_000 })
          yield* gateway.redisGoes
          const burst = Effect.forEach([1, 2, 3, 4, 5], () => gateway.ask({ target: Proxy.chat, headers, body: {} }))
          yield* burst
          yield* TestClock.adjust("1 second")
          yield* burst
          yield* gateway.redisReturns
          yield* TestClock.adjust("2 seconds")
        }).pipe(Effect.provide(Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))])))
        const count = (said: string) => lines.filter((line) => line.includes(said)).length
        assert.deepStrictEqual(
          [
            "limits cannot be checked; the request is refused",
            "usage records wait in memory, because Redis failed; retrying",
            "request failed"
          ].map(count),
          [2, 2, 2]
        )
        assert.isTrue(lines.some((line) => line.includes(`"left_out":4`)))
      })
  )

  it.effect("that is a stream is among the active streams for as long as it runs", () =>
    Effect.gen(function* () {
      const seen: Array<string | undefined> = []
      const streams = Effect.map(
        PrometheusMetrics.format(),
        (page) => /^gateway_active_streams (\d+)$/m.exec(page)?.[1]
      )
      const gateway = yield* Proxy.make({
        upstream: (sink, request) =>
          Effect.andThen(
            Effect.map(streams, (now) => seen.push(now)),
            Upstream.events("data: {}\n\n")(sink, request)
          )
      })
      const key = yield* Proxy.issueKey()
      yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
      yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { stream: true } })
      assert.deepStrictEqual([...seen, yield* streams], ["0", "1", "0"])
    })
  )

  it.effect("that the gateway itself fails on: 500, with nothing of the defect in the answer", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: () => Effect.die(new Error("canary-defect")) })
      const key = yield* Proxy.issueKey({ tpm_limit: 1000 })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { max_tokens: 900 } })
      assert.deepStrictEqual([wire.status, JSON.parse(wire.text).error.code], [500, "internal_error"])
      assert.notInclude(wire.text, "canary")
      assert.deepInclude((yield* gateway.records)[0], {
        status_code: 500,
        error_code: "internal_error",
        cost_nanos: null
      })
    })
  )

  it.effect.each([
    { at: "gateway.body", sent: 0, total_tokens: null, held: 0 },
    { at: "gateway.limits.admit", sent: 0, total_tokens: null, held: 0 },
    { at: "chat", sent: 0, total_tokens: null, held: 0 },
    // the answer is not known to the gateway any more: the reservation stands for it
    { at: "gateway.guardrails", before: 1, sent: 1, total_tokens: 890, held: 890 },
    // the client has seen the head of the answer, and that there is more
    { at: "gateway.settle", status: 200, sent: 1, total_tokens: 50, held: 50 }
  ])(
    "a defect at $at leaves a record, and of the reservation what was had",
    ({ at, before, held, sent, status = 500, total_tokens }) =>
      Effect.gen(function* () {
        const usage = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 }
        const gateway = yield* Proxy.make({ upstream: Upstream.json({ usage }) })
        const guardrails = { mandatory_guardrails: before === undefined ? [] : ["pii-redact"] }
        const key = yield* Proxy.issueKey({ tpm_limit: 2000 }, { guardrails })
        const ask = gateway.ask({ target: Proxy.chat, headers: key.headers, body: { max_tokens: 890 } })
        const wire = yield* ask
        assert.strictEqual(wire.status, status)
        if (status === 200) assert.strictEqual(wire.ending, "cut")
        else assert.strictEqual(JSON.parse(wire.text).error.code, "internal_error")
        assert.lengthOf(gateway.sent, sent)
        const records = yield* gateway.records
        assert.lengthOf(records, 1)
        assert.deepInclude(records[0], { status_code: status, error_code: "internal_error", total_tokens })
        assert.strictEqual((yield* gateway.held(key.id)).tokens, held)
        assert.strictEqual((yield* ask).status, 200)
      }).pipe(Effect.withTracer(failing({ at, ...(before !== undefined && { before }) })))
  )
})

/** Makes the gateway fail once: where the phase `at` begins, after it began `before` times. */
const failing = ({ at, before = 0 }: { readonly at: string; readonly before?: number }) => {
  let begun = 0
  return Tracer.make({
    span: (options) => {
      if (options.name === at && begun++ === before) throw new Error("canary-defect")
      return Tracer.nativeTracer.span(options)
    }
  })
}

const priced = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`INSERT INTO model_prices (model, input_nanos_per_million, output_nanos_per_million)
    VALUES ('large', 1000000000, 2000000000)`
})

const bodiesRefused = Effect.map(PrometheusMetrics.format(), (page) =>
  Number(/^gateway_body_admission_rejections_total (\d+)$/m.exec(page)?.[1] ?? 0)
)

type Failure = readonly [
  phase: UpstreamError["phase"],
  reason: UpstreamError["reason"],
  status: number,
  code: ErrorCode,
  message: string
]
