import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import { Database } from "../../src/services/Database.ts"
import * as Proxy from "./Proxy.ts"
import * as Upstream from "./ScriptedUpstream.ts"

/** Tokens and nano-dollars. */
interface Amount {
  readonly tokens: number
  readonly nanos: number
}

/** A request of a key with `tpm_limit` and `daily_budget_usd`, seen from its counters. */
const asked = Effect.fnUntraced(function* (
  request: { readonly target?: string; readonly body: object },
  policy: object = {}
) {
  let held: Effect.Effect<Amount> = Effect.die("not asked yet")
  let reserved: Amount | undefined
  const gateway = yield* Proxy.make({
    configured: priced,
    upstream: (sink, exchange) =>
      Effect.andThen(
        Effect.tap(held, (amount) =>
          Effect.sync(() => {
            reserved = amount
          })
        ),
        Upstream.json({ usage: { prompt_tokens: 1, completion_tokens: 1 } })(sink, exchange)
      )
  })
  const key = yield* Proxy.issueKey({ tpm_limit: 100_000, daily_budget_usd: 5, ...policy })
  held = gateway.held(key.id)
  const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, ...request })
  return { wire, reserved, sent: gateway.sent[0]?.text }
})

layer(Proxy.database)("A request is reserved", (it) => {
  it.effect.each<[what: string, body: object, tokens: number, sent: object]>([
    ["by the largest of several bounds", { max_completion_tokens: 1, max_tokens: 16_000 }, 16_000, {}],
    ["for each of its answers", { max_tokens: 100, n: 4 }, 400, {}],
    ["by a bound in extra_body", { max_tokens: 100, extra_body: { max_tokens: 16_000 } }, 16_000, {}],
    ["for 4096 tokens where it names no bound", {}, 4096, { max_completion_tokens: 4096 }],
    ["for 4096 tokens of each answer", { n: 3 }, 3 * 4096, { max_completion_tokens: 4096 }],
    ["for what fits its limits where 4096 tokens do not", { n: 50 }, 99_950, { max_completion_tokens: 1999 }]
  ])("%s", ([, members, output, written]) =>
    Effect.gen(function* () {
      const body = { ...members, model: "large" }
      const { reserved, sent, wire } = yield* asked({ body })
      const input = (reserved?.tokens ?? 0) - output
      assert.isBelow(input, 10)
      assert.deepStrictEqual(
        [wire.status, reserved],
        [200, { tokens: input + output, nanos: input * 1000 + output * 2000 }],
        wire.text
      )
      assert.deepStrictEqual(JSON.parse(sent ?? ""), { ...written, ...body })
    })
  )

  it.effect("without a bound being written for a key that has neither limits of tokens nor of money", () =>
    Effect.gen(function* () {
      const body = { model: "large" }
      const { sent } = yield* asked({ body }, { tpm_limit: null, daily_budget_usd: null, rpm_limit: 5 })
      assert.strictEqual(sent, JSON.stringify(body))
    })
  )

  it.effect.each<[what: string, body: object, policy: object, status: number, says: string]>([
    ["tpm_limit", { max_tokens: 16_000 }, { tpm_limit: 1000 }, 429, "Request at most 998 output tokens in total."],
    ["daily_budget_usd", { max_tokens: 16_000 }, { daily_budget_usd: 0.001 }, 402, "Request at most 499 output tokens"],
    ["tpm_limit, by the number of its answers", { n: 1e300 }, {}, 429, "Request at most 99997 output tokens in total."],
    [
      "max_cost_per_request, by the number of its answers",
      { n: 1e300 },
      { max_cost_per_request: 1 },
      403,
      "max_cost_per_request"
    ]
  ])("or refused, when it can never fit %s", ([, members, policy, status, says]) =>
    Effect.gen(function* () {
      const { reserved, wire } = yield* asked({ body: { ...members, model: "large" } }, policy)
      assert.deepStrictEqual([wire.status, reserved], [status, undefined], wire.text)
      assert.include(wire.text, says)
    })
  )
})

layer(Proxy.database)("Names beside the model", (it) => {
  const held = (nanos: number, tokens: number) => ({ tokens, nanos })
  const bound = { max_tokens: 20_000 }

  it.effect.each<[what: string, body: object]>([
    ["a fallback", { fallbacks: ["zzz"] }],
    ["a list of models", { models: ["zzz"] }],
    ["extra_body", { extra_body: { model: "zzz" } }],
    ["a hosted tool", { tools: [{ type: "image_generation", model: "zzz" }] }]
  ])("leave the price of the model where it is, when they have none: %s", ([, members]) =>
    Effect.gen(function* () {
      const { reserved, wire } = yield* asked({ body: { ...bound, ...members, model: "large" } })
      const input = (reserved?.tokens ?? 0) - bound.max_tokens
      assert.deepStrictEqual(
        [wire.status, reserved],
        [200, held(input * 1000 + bound.max_tokens * 2000, input + 20_000)]
      )
    })
  )

  it.effect.each<[what: string, body: object, each: number]>([
    ["a dearer fallback", { model: "large", fallbacks: ["huge"] }, 4000],
    ["a cheaper fallback", { model: "large", fallbacks: ["small"] }, 2000],
    ["a model without a price, whose fallback has one", { model: "zzz", fallbacks: ["large"] }, 2000],
    ["no model, and a fallback", { fallbacks: ["large"] }, 2000]
  ])("raise the price and never lower it: %s", ([, body, each]) =>
    Effect.gen(function* () {
      const { reserved, wire } = yield* asked({ body: { ...body, ...bound } })
      assert.deepStrictEqual([wire.status, (reserved?.nanos ?? 0) >= bound.max_tokens * each], [200, true])
      assert.isBelow(reserved?.nanos ?? 0, bound.max_tokens * each + 100_000)
    })
  )

  it.effect("cost a request for a model without a price no less than it costs alone", () =>
    Effect.gen(function* () {
      const { reserved } = yield* asked({ body: { model: "zzz", max_tokens: 5, fallbacks: ["small"] } })
      assert.strictEqual(reserved?.nanos, 10_000_000)
    })
  )

  it.effect("leave the bill at the price of the model, too", () =>
    Effect.gen(function* () {
      const usage = { prompt_tokens: 10, completion_tokens: 50_000 }
      const gateway = yield* Proxy.make({ configured: priced, upstream: Upstream.json({ usage }) })
      const key = yield* Proxy.issueKey()
      const ask = (body: object) => gateway.ask({ target: Proxy.chat, headers: key.headers, body })
      yield* ask({ model: "large", fallbacks: ["zzz"] })
      yield* ask({ model: "zzz", fallbacks: ["large"] })
      for (const record of yield* gateway.records) {
        assert.deepInclude(record, { cost_nanos: 10 * 1000 + 50_000 * 2000, cost_source: "price_table" })
      }
    })
  )

  it.effect("leave a batch at the price of the requests that have one", () =>
    Effect.gen(function* () {
      const requests = ["large", "zzz"].map((model) => ({ params: { model, ...bound } }))
      const { reserved } = yield* asked({ target: "/v1/messages/batches", body: { requests } })
      assert.isAbove(reserved?.nanos ?? 0, 2 * bound.max_tokens * 2000)
    })
  )
})

layer(Proxy.database)("A response in the background", (it) => {
  const body = { model: "large", background: true, max_output_tokens: 100 }
  const held = { tokens: 103, nanos: 3 * 1000 + 100 * 2000 }

  it.effect.each<[what: string, more: object, upstream: Upstream.Script]>([
    ["its acknowledgement says", {}, Upstream.json({ status: "queued", usage: null })],
    ["its stream reports", { stream: true }, Upstream.events('data: {"response":{"usage":{"output_tokens":1}}}\n\n')]
  ])("is charged what it is held for, whatever %s", ([, more, upstream]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: priced, upstream })
      const key = yield* Proxy.issueKey({ tpm_limit: 100_000, daily_budget_usd: 5 })
      const request = { target: "/v1/responses", headers: key.headers, body: { ...body, ...more } }
      assert.strictEqual((yield* gateway.ask(request)).status, 200)
      const tokens = held.tokens + Object.keys(more).length
      const nanos = held.nanos + Object.keys(more).length * 1000
      assert.deepStrictEqual(yield* gateway.held(key.id), { tokens, nanos })
      assert.deepInclude((yield* gateway.records)[0], {
        usage_source: "estimated",
        total_tokens: tokens,
        cost_nanos: nanos
      })
    })
  )

  it.effect("is charged the same when its client leaves", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: priced, upstream: Upstream.hangs() })
      const key = yield* Proxy.issueKey({ tpm_limit: 100_000, daily_budget_usd: 5 })
      const asking = yield* Effect.forkChild(gateway.ask({ target: "/v1/responses", headers: key.headers, body }))
      yield* Effect.repeat(Effect.yieldNow, { until: () => gateway.sent.length > 0 })
      yield* Fiber.interrupt(asking)
      assert.deepStrictEqual(yield* gateway.held(key.id), held)
    })
  )

  it.effect.each([{}, { stream: true }])("is refused where a guardrail has to see the answer: %j", (more) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: priced })
      const key = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails: ["pii-redact"] } })
      const request = { target: "/v1/responses", headers: key.headers, body: { ...body, ...more } }
      const refused = yield* gateway.ask(request)
      const { error } = JSON.parse(refused.text)
      assert.deepStrictEqual(
        [refused.status, error.code, error.param],
        [400, "invalid_guardrail_request", "background"]
      )
      assert.isEmpty(gateway.sent)
      const plain = yield* gateway.ask({ ...request, body: { ...body, background: false } })
      assert.strictEqual(plain.status, 200)
    })
  )

  it.effect("is told by extra_body, too", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: priced, upstream: Upstream.json({ status: "queued" }) })
      const key = yield* Proxy.issueKey({ daily_budget_usd: 5 })
      const body = { model: "large", max_output_tokens: 100, extra_body: { background: true } }
      yield* gateway.ask({ target: "/v1/responses", headers: key.headers, body })
      const [record] = yield* gateway.records
      assert.strictEqual(record?.usage_source, "estimated")
      assert.isAtLeast(record?.cost_nanos ?? 0, 100 * 2000)
    })
  )

  it.effect("must say so by true or false", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: priced })
      const key = yield* Proxy.issueKey()
      const ask = (target: string) =>
        gateway.ask({ target, headers: key.headers, body: { ...body, background: "true" } })
      const refused = yield* ask("/v1/responses")
      assert.deepStrictEqual([refused.status, JSON.parse(refused.text).error.param], [400, "background"])
      assert.strictEqual((yield* ask(Proxy.chat)).status, 200)
    })
  )
})

layer(Proxy.database)("A key that refuses models without a price", (it) => {
  it.effect("is refused others, and told which and what to do", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: priced })
      const key = yield* Proxy.issueKey({ unpriced_models: "refuse" })
      const ask = (target: string, body: object) => gateway.ask({ target, headers: key.headers, body })
      const refused = yield* ask(Proxy.chat, { model: "large-alias" })
      const { error } = JSON.parse(refused.text)
      assert.deepStrictEqual([refused.status, error.code, error.param], [403, "policy_denied", "model"])
      assert.include(error.message, '"large-alias" has none')
      assert.include(error.message, "model-prices")
      assert.include((yield* ask(Proxy.chat, {})).text, "the request names no model")
      const batch = { requests: [{ params: { model: "large" } }, { params: { model: "other" } }] }
      assert.include((yield* ask("/v1/messages/batches", batch)).text, '\\"other\\" has none')
      const unnamed = { requests: [{ params: { model: "large" } }, { params: {} }] }
      assert.include((yield* ask("/v1/messages/batches", unnamed)).text, "the request names no model")
      const beside = yield* ask(Proxy.chat, { model: "large", fallbacks: ["other"] })
      assert.include(beside.text, '\\"other\\" has none')
      assert.isEmpty(gateway.sent)
      assert.strictEqual((yield* ask(Proxy.chat, { model: "large" })).status, 200)
      assert.strictEqual((yield* ask("/v1/messages/count_tokens", { model: "large-alias" })).status, 200)
      assert.deepStrictEqual((yield* gateway.records)[0]?.denial, { check: "price", layer: "key" })
    })
  )
})

layer(Proxy.database)("A key that pays the dearest price for models without one", (it) => {
  it.effect("reserves and pays the highest of each price in the list, and at least the flat cost", () =>
    Effect.gen(function* () {
      const configured = Effect.flatMap(
        Database,
        ({ sql }) => sql`INSERT INTO model_prices (model, input_nanos_per_million, output_nanos_per_million) VALUES
          ('cheap', 1000000000, 90000000000), ('dear', 50000000000, 2000000000)`
      )
      const usage = { prompt_tokens: 1000, completion_tokens: 1000 }
      const gateway = yield* Proxy.make({ configured, upstream: Upstream.json({ usage }) })
      const key = yield* Proxy.issueKey({ unpriced_models: "dearest", max_cost_per_request: 1 })
      const ask = (model: string, max_tokens: number) =>
        gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model, max_tokens } })
      assert.strictEqual((yield* ask("unheard-of", 1000)).status, 200)
      assert.include((yield* ask("unheard-of", 20_000)).text, "max_cost_per_request")
      assert.strictEqual((yield* ask("cheap", 10_000)).status, 200)
      const charged = (yield* gateway.records).filter(({ status_code }) => status_code === 200)
      assert.sameDeepMembers<unknown>(
        charged.map(({ cost_nanos, cost_source, model }) => [model, cost_nanos, cost_source]),
        [
          ["unheard-of", 140_000_000, "route_default"],
          ["cheap", 91_000_000, "price_table"]
        ]
      )
    })
  )
})

layer(Proxy.database)("A model without a price", (it) => {
  it.effect("is logged once, when an upstream has answered for it", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const gateway = yield* Proxy.make({
        configured: priced,
        upstream: (sink, exchange) =>
          Upstream.json({}, exchange.target === "/v1/embeddings" ? 404 : 200)(sink, exchange)
      }).pipe(Effect.provide(Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))])))
      const key = yield* Proxy.issueKey()
      const ask = (model: string, target = Proxy.chat) =>
        gateway.ask({ target, headers: key.headers, body: { model, input: "" } })
      yield* ask("lost", "/v1/embeddings")
      yield* Effect.forEach(["large", "new", "new", "newer", "new"], (model) => ask(model))
      const said = lines.filter((line) => line.includes("a model has no price; its requests are charged"))
      assert.deepStrictEqual(
        said.map((line) => /"model":"(\w+)"/.exec(line)?.[1]),
        ["new", "newer"]
      )
    })
  )
})

layer(Proxy.database)("A pattern", (it) => {
  it.effect("prices and allows the models whose names begin with it", () =>
    Effect.gen(function* () {
      const usage = { prompt_tokens: 1000, completion_tokens: 0 }
      const gateway = yield* Proxy.make({ configured: pricedByPattern, upstream: Upstream.json({ usage }) })
      const key = yield* Proxy.issueKey({ allowed_models: ["vendor-*", "large"] })
      const ask = (model: string) => gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model } })
      const statusOf = (model: string) => Effect.map(ask(model), ({ status }) => status)
      assert.deepStrictEqual(
        yield* Effect.all(["vendor-mini", "vendor-max-2", "vendor-max", "large"].map(statusOf)),
        [200, 200, 200, 200]
      )
      assert.deepStrictEqual(yield* Effect.all(["vendor", "larger"].map(statusOf)), [403, 403])
      const costs = (yield* gateway.records).map(({ cost_nanos, cost_source, model }) => [
        model,
        cost_nanos,
        cost_source
      ])
      assert.sameDeepMembers<unknown>(costs.slice(0, 4), [
        ["vendor-mini", 1_000_000, "price_table"],
        ["vendor-max-2", 2_000_000, "price_table"],
        ["vendor-max", 3_000_000, "price_table"],
        ["large", 10_000_000, "route_default"]
      ])
    })
  )
})

const pricedByPattern = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`INSERT INTO model_prices (model, input_nanos_per_million, output_nanos_per_million) VALUES
    ('vendor-*', 1000000000, 0), ('vendor-max*', 2000000000, 0), ('vendor-max', 3000000000, 0)`
})

const priced = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`INSERT INTO model_prices (model, input_nanos_per_million, output_nanos_per_million) VALUES
    ('small', 1000, 2000), ('large', 1000000000, 2000000000), ('huge', 1000000000, 4000000000)`
})
