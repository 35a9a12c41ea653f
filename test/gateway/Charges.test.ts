import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
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
    ["for 4096 tokens where it names no bound", {}, 4096, { max_completion_tokens: 4096 }],
    ["for 4096 tokens of each answer", { n: 3 }, 3 * 4096, { max_completion_tokens: 4096 }],
    ["for what fits its limits where 4096 tokens do not", { n: 50 }, 99_950, { max_completion_tokens: 1999 }]
  ])("%s", ([, members, output, written]) =>
    Effect.gen(function* () {
      const body = { ...members, model: "large" }
      const { reserved, sent, wire } = yield* asked({ body })
      const input = "n" in members ? 3 : 2
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
    ["tpm_limit", { max_tokens: 16_000 }, { tpm_limit: 1000 }, 429, "Ask for at most 998 output tokens in all."],
    ["daily_budget_usd", { max_tokens: 16_000 }, { daily_budget_usd: 0.001 }, 402, "Ask for at most 499 output tokens"],
    ["tpm_limit, by the number of its answers", { n: 1e300 }, {}, 429, "Ask for at most 99997 output tokens in all."],
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
      assert.isEmpty(gateway.sent)
      assert.strictEqual((yield* ask(Proxy.chat, { model: "large" })).status, 200)
      assert.strictEqual((yield* ask("/v1/messages/count_tokens", { model: "large-alias" })).status, 200)
      assert.deepStrictEqual((yield* gateway.records)[0]?.denial, { check: "price", layer: "key" })
    })
  )
})

const priced = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`INSERT INTO model_prices (model, input_nanos_per_million, output_nanos_per_million) VALUES
    ('large', 1000000000, 2000000000)`
})
