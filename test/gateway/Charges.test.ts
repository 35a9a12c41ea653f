import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
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

const priced = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`INSERT INTO model_prices (model, input_nanos_per_million, output_nanos_per_million) VALUES
    ('large', 1000000000, 2000000000)`
})
