import { assert, describe, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { eventually } from "../Eventually.ts"
import { head, serve } from "../upstream/ScriptedServer.ts"
import { type Answer, call, chat, codeOf, message } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"
import * as Minute from "./Minute.ts"
import { Pair } from "./Pair.ts"

const concurrent = 200

/** `concurrent` requests at once, every second one to the other process. */
const storm = (request: (gateway: Pair["Service"]["first"]) => Effect.Effect<Answer>) =>
  Effect.gen(function* () {
    const { first, second } = yield* Pair
    yield* Minute.early
    return yield* Effect.all(
      Array.from({ length: concurrent }, (_, i) => request(i % 2 === 0 ? first : second)),
      { concurrency: "unbounded" }
    )
  })

const admitted = (answers: ReadonlyArray<Answer>) => answers.filter(({ status }) => status === 200)
const refusals = (answers: ReadonlyArray<Answer>) => [
  ...new Set(answers.filter(({ status }) => status !== 200).map((answer) => `${answer.status} ${codeOf(answer)}`))
]

describe.skipIf(!Deployment.available)("200 concurrent requests, two processes", () => {
  layer(Pair.layer, { excludeTestServices: true })((it) => {
    it.effect("against a daily budget worth ten spend ten, and the records say so", () =>
      Effect.gen(function* () {
        const { createKey, deployment, upstream } = yield* Pair
        const key = yield* createKey({ policy: { daily_budget_usd: 0.1 } })
        const before = upstream.requests.length
        const answers = yield* storm((gateway) => chat(gateway, key.raw))
        assert.strictEqual(admitted(answers).length, 10)
        assert.deepStrictEqual(refusals(answers), ["402 budget_exceeded"])
        assert.strictEqual(upstream.requests.length - before, 10)
        const records = yield* deployment.recorded(key.id, concurrent)
        assert.strictEqual(records.length, concurrent)
        const paid = records.filter(({ status_code }) => status_code === 200)
        assert.strictEqual(paid.length, 10)
        assert.strictEqual(
          paid.reduce((sum, { cost_nanos }) => sum + (cost_nanos ?? 0), 0),
          100_000_000
        )
      })
    )

    it.effect("with three keys against $0.05 that their team shares spend five cents together", () =>
      Effect.gen(function* () {
        const { createKey, operate, second } = yield* Pair
        const shared = { daily_budget_usd: 0.05, rpm_limit: 1_000_000 }
        yield* operate("POST", "/policy-layers", { kind: "team", scope_id: "blue", shared })
        const createMember = createKey({ team_id: "blue" })
        const keys = yield* Effect.all([createMember, createMember, createMember])
        yield* eventually(
          call(second, "/v1/models", keys[0].raw),
          ({ headers }) => headers.get("x-ratelimit-limit-requests") === "1000000"
        )
        let turn = 0
        const answers = yield* storm((gateway) => chat(gateway, keys[turn++ % 3]?.raw ?? ""))
        assert.strictEqual(admitted(answers).length, 5)
        assert.deepStrictEqual(refusals(answers), ["402 budget_exceeded"])
        const refused = answers.find(({ status }) => status === 402)
        assert.include(refused?.text ?? "", "shared daily_budget_usd of team blue")
      })
    )

    it.effect("against a monthly budget likewise, in family B's shape", () =>
      Effect.gen(function* () {
        const { createKey } = yield* Pair
        const key = yield* createKey({ policy: { monthly_budget_usd: 0.1 } })
        const answers = yield* storm((gateway) => message(gateway, key.raw))
        assert.strictEqual(admitted(answers).length, 10)
        assert.deepStrictEqual(refusals(answers), ["402 budget_exceeded"])
        const refused = answers.find(({ status }) => status === 402)
        assert.match(refused?.text ?? "", /^\{"type":"error","error":\{"type":"billing_error"/)
      })
    )

    it.effect("against ten requests a minute, ten are served and the others are told when to come back", () =>
      Effect.gen(function* () {
        const { createKey, deployment } = yield* Pair
        const key = yield* createKey({ policy: { rpm_limit: 10 } })
        const answers = yield* storm((gateway) => chat(gateway, key.raw))
        assert.strictEqual(admitted(answers).length, 10)
        assert.deepStrictEqual(refusals(answers), ["429 rate_limit_exceeded"])
        for (const { headers, status } of answers) {
          assert.strictEqual(headers.get("x-ratelimit-limit-requests"), "10")
          if (status === 429) assert.isTrue(Number(headers.get("retry-after")) > 0)
        }
        const records = yield* deployment.recorded(key.id, concurrent)
        assert.strictEqual(records.filter(({ status_code }) => status_code === 200).length, 10)
      })
    )

    it.effect("against a day's requests likewise", () =>
      Effect.gen(function* () {
        const { createKey } = yield* Pair
        const key = yield* createKey({ policy: { max_requests_per_day: 10 } })
        const answers = yield* storm((gateway) => chat(gateway, key.raw))
        assert.strictEqual(admitted(answers).length, 10)
        assert.deepStrictEqual(refusals(answers), ["429 rate_limit_exceeded"])
      })
    )

    it.effect("against a minute's tokens, what was used and recorded is never above the limit", () =>
      Effect.gen(function* () {
        const { createKey, deployment } = yield* Pair
        const key = yield* createKey({ policy: { tpm_limit: 1_000 } })
        const answers = yield* storm((gateway) => chat(gateway, key.raw, { max_tokens: 100 }))
        const served = admitted(answers).length
        assert.isTrue(served > 0 && served < concurrent, `${served} were served`)
        assert.deepStrictEqual(refusals(answers), ["429 token_rate_limit_exceeded"])
        const records = yield* deployment.recorded(key.id, concurrent)
        const used = records.reduce((sum, { total_tokens }) => sum + (total_tokens ?? 0), 0)
        assert.isAbove(used, 0)
        assert.isAtMost(used, 1_000)
        assert.strictEqual(records.filter(({ status_code }) => status_code === 200).length, served)
      })
    )

    it.effect("that cost what the upstream says spend no more than the budget, and nearly all of it", () =>
      Effect.gen(function* () {
        const { createKey, deployment, first } = yield* Pair
        yield* answering({ usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, cost: 0.004 } })
        const key = yield* createKey({ policy: { daily_budget_usd: 0.1 } })
        const once = chat(first, key.raw)
        yield* eventually(once, ({ headers }) => headers.get("x-reported") === "yes")
        const served = admitted(yield* storm((gateway) => chat(gateway, key.raw))).length
        assert.isAtLeast(served, 9)
        // what was reserved and not spent is there again
        yield* Effect.repeat(once, { until: ({ status }) => status === 402 })
        const records = yield* deployment.recorded(key.id, concurrent + 2)
        const spent = records.reduce((sum, { cost_nanos }) => sum + (cost_nanos ?? 0), 0)
        assert.isAtMost(spent, 100_000_000)
        assert.isAbove(spent + 10_000_000, 100_000_000)
      })
    )

    it.effect("leave no reservation open", () =>
      Effect.gen(function* () {
        const { createKey, deployment } = yield* Pair
        const key = yield* createKey({ policy: { daily_budget_usd: 0.1, rpm_limit: 50 } })
        yield* storm((gateway) => chat(gateway, key.raw))
        assert.strictEqual(yield* deployment.redis("ZCARD", deployment.key(`limits:open:${key.id}`)), 0)
      })
    )
  })
})

/** Until the scope ends, an upstream that answers every request with this. */
const answering = Effect.fnUntraced(function* (body: object) {
  const { operate } = yield* Pair
  const text = JSON.stringify(body)
  const { origin } = yield* serve(async (peer) => {
    for (;;) {
      await peer.request()
      await peer.write(
        head(200, ["content-type", "application/json", "content-length", String(text.length), "x-reported", "yes"]) +
          text
      )
    }
  })
  const row = { provider: "upstream", name: "reporting", base_url: origin, credential: "of-the-row" }
  yield* Effect.acquireRelease(
    Effect.flatMap(operate("POST", "/providers", row), (created) => Effect.orDie(decodeRow(created))),
    ({ id }) => operate("DELETE", `/providers/${id}`)
  )
})

const decodeRow = Schema.decodeUnknownEffect(Schema.Struct({ id: Schema.String }))
