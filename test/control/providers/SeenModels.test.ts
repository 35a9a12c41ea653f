import { randomUUID } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"
import * as StoredUsage from "../usage/StoredUsage.ts"

const models = `${admin}/models`

const requests = Effect.fnUntraced(function* (model: string | null, count: number, age: string) {
  const { sql } = yield* Database
  yield* sql`INSERT INTO usage_events (id, request_id, key_id, route, provider, status, status_code, latency_ms, usage_source,
      cost_source, streamed, model, total_tokens, cost_nanos, created_at)
    SELECT gen_random_uuid(), 'r', ${randomUUID()}, '/v1/responses', 'upstream', 'success', 200, 7, 'reported',
      'route_default', false, ${model}, 5, 10000000, now() - ${age}::interval FROM generate_series(1, ${count}::int)`
})

suite("Seen models", (it) => {
  it.effect("are those of 30 days, with the price that applies to them, the most used first", () =>
    Effect.gen(function* () {
      yield* StoredUsage.empty
      yield* requests("gpt-5", 3, "1 day")
      yield* requests("ours-large", 2, "29 days")
      yield* requests("nobodys", 1, "1 hour")
      yield* requests("forgotten", 9, "40 days")
      // requests without a model, and those whose names no upstream has answered, are no model that lacks a price
      yield* requests(null, 8, "1 day")
      yield* requests("invented", 8, "2 days")
      const { sql } = yield* Database
      yield* sql`UPDATE usage_events SET model_known = false WHERE model = 'invented'`
      yield* ok("PUT", `${admin}/model-prices/ours-*`, {
        body: { input_usd_per_million: 1, output_usd_per_million: 2 }
      })
      const list = yield* ok("GET", `${models}?p95=true`)
      const shown = [0, 1, 2, 3].map((place) => [
        at(list, "models", place, "model"),
        at(list, "models", place, "price", "model"),
        at(list, "models", place, "in_book"),
        at(list, "models", place, "summary", "request_count"),
        at(list, "models", place, "summary", "total_tokens"),
        at(list, "models", place, "summary", "estimated_cost_usd")
      ])
      assert.deepStrictEqual(shown, [
        ["gpt-5", undefined, true, 3, 15, 0.03],
        ["ours-large", "ours-*", false, 2, 10, 0.02],
        ["nobodys", undefined, false, 1, 5, 0.01],
        [undefined, undefined, undefined, undefined, undefined, undefined]
      ])
      // each took 7 ms; histograms begin with the minutes of the last 48 hours
      assert.closeTo(Number(at(list, "models", 0, "p95_latency_ms")), 7, 0.15)
      assert.isNull(at(list, "models", 1, "p95_latency_ms"))
      assert.isNull(at(yield* ok("GET", models), "models", 0, "p95_latency_ms"))
      const unpriced = yield* ok("GET", `${models}?priced=false&limit=1`)
      assert.deepStrictEqual(
        [at(unpriced, "models", 0, "model"), at(unpriced, "models", 1), at(unpriced, "has_more")],
        ["gpt-5", undefined, true]
      )
      const priced = yield* ok("GET", `${models}?priced=true&sort_by=cost`)
      assert.deepStrictEqual([at(priced, "models", 0, "model"), at(priced, "has_more")], ["ours-large", false])
      const wrong = yield* call("GET", `${models}?limit=501`)
      assert.deepStrictEqual(refusalOf(wrong), { status: 422, code: "invalid_request", param: "limit" })
    })
  )

  it.effect("that were refused for want of a price come first, until they have one", () =>
    Effect.gen(function* () {
      yield* StoredUsage.empty
      const { sql } = yield* Database
      yield* requests("used", 5, "1 day")
      yield* requests("wanted", 2, "1 day")
      yield* requests("sometimes", 3, "1 hour")
      yield* requests("long-ago", 9, "40 days")
      const refuse = (check: string, model: string, known: boolean) => sql`UPDATE usage_events
        SET status = 'failure', status_code = 403, error_code = 'policy_denied', cost_source = 'none', cost_nanos = 0,
          denial = jsonb_build_object('check', ${check}::text), model_known = ${known} WHERE model = ${model}`
      yield* refuse("price", "wanted", false)
      yield* refuse("price", "long-ago", false)
      yield* sql`UPDATE usage_events SET denial = '{"check":"price"}' WHERE id =
        (SELECT id FROM usage_events WHERE model = 'sometimes' LIMIT 1)`
      yield* requests("secret", 7, "1 day")
      yield* refuse("model", "secret", false)
      const shown = (query = "") =>
        Effect.map(ok("GET", `${models}${query}`), (list) =>
          [0, 1, 2, 3].map((place) => [
            at(list, "models", place, "model"),
            at(list, "models", place, "refused_for_price_count"),
            at(list, "models", place, "summary", "request_count")
          ])
        )
      const nothing = [undefined, undefined, undefined]
      const first = [
        ["wanted", 2, 2],
        ["sometimes", 1, 3]
      ]
      assert.deepStrictEqual(yield* shown(), [...first, ["used", 0, 5], nothing])
      assert.deepStrictEqual(yield* shown("?priced=false&limit=2"), [...first, nothing, nothing])
      yield* ok("PUT", `${admin}/model-prices/wanted`, {
        body: { input_usd_per_million: 1, output_usd_per_million: 2 }
      })
      assert.deepStrictEqual((yield* shown())[0], ["sometimes", 1, 3])
      yield* call("DELETE", `${admin}/model-prices/wanted`)
    })
  )

  it.effect("are listed beside a client that loops on a model without a price", () =>
    Effect.gen(function* () {
      yield* StoredUsage.empty
      const { sql } = yield* Database
      yield* sql`INSERT INTO usage_events (id, request_id, key_id, route, provider, status, status_code, latency_ms, usage_source,
          cost_source, streamed, model, denial, created_at)
        SELECT gen_random_uuid(), 'r', ${randomUUID()}, '/v1/responses', 'upstream', 'failure', 403, 1, 'status_only', 'none',
          false, 'looped', '{"check":"price"}', now() - interval '1 hour' FROM generate_series(1, 100002)`
      yield* requests("used", 1, "1 day")
      const list = yield* ok("GET", models)
      const shown = (place: number) => [
        at(list, "models", place, "model"),
        at(list, "models", place, "refused_for_price_count")
      ]
      assert.deepStrictEqual(
        [shown(0), shown(1)],
        [
          ["looped", 100_000],
          ["used", 0]
        ]
      )
      yield* StoredUsage.empty
    })
  )

  it.effect("without a price have what they would have cost by the book", () =>
    Effect.gen(function* () {
      yield* StoredUsage.empty
      const { sql } = yield* Database
      yield* requests("gpt-5", 2, "1 hour")
      yield* sql`UPDATE usage_events SET input_tokens = 1000000, cached_input_tokens = 400000, output_tokens = 100000`
      const shown = at(yield* ok("GET", models), "models", 0)
      const price = (field: string) => Number(at(shown, "book_price", field))
      const expected =
        2 *
        (0.6 * price("input_usd_per_million") +
          0.4 * price("cached_input_usd_per_million") +
          0.1 * price("output_usd_per_million"))
      assert.approximately(Number(at(shown, "at_book_price_usd")), expected, 1e-9)
      yield* requests("nobodys", 1, "1 hour")
      const nobodys = at(yield* ok("GET", models), "models", 1)
      assert.deepStrictEqual([at(nobodys, "book_price"), at(nobodys, "at_book_price_usd")], [null, null])
    })
  )
})
