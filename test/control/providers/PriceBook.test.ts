import { assert } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"

const prices = `${admin}/model-prices`
const put = (model: string, input: number) =>
  ok("PUT", `${prices}/${encodeURIComponent(model)}`, {
    body: { input_usd_per_million: input, output_usd_per_million: input }
  })
const importing = (body: object) => call("POST", `${prices}/import`, { body })
const fresh = Effect.flatMap(Database, ({ sql }) => sql`DELETE FROM model_prices`)

const entry = (book: Schema.Json, model: string) => {
  const all = at(book, "prices")
  assert(Array.isArray(all))
  return all.find((price) => at(price, "model") === model)
}

suite("The price book", (it) => {
  it.effect("shows what would change, and names its sources and their days", () =>
    Effect.gen(function* () {
      yield* fresh
      yield* put("gpt-5", 1.25)
      yield* put("o3*", 7)
      yield* put("ours", 1)
      const book = yield* ok("GET", `${prices}/book`)
      assert.deepInclude(entry(book, "gpt-5"), {
        status: "changed",
        vendor: "OpenAI",
        changes: [
          { field: "output_usd_per_million", from: 1.25, to: 10 },
          { field: "cached_input_usd_per_million", from: null, to: 0.125 }
        ]
      })
      assert.deepInclude(entry(book, "o3"), { status: "new", covered_by: "o3*", output_usd_per_million: 8 })
      assert.deepInclude(entry(book, "claude-opus-5"), { status: "new", covered_by: null })
      assert.deepStrictEqual(
        [at(book, "not_in_book", 0, "model"), at(book, "not_in_book", 1, "model"), at(book, "not_in_book", 2)],
        ["o3*", "ours", undefined]
      )
      for (let place = 0; at(book, "vendors", place) !== undefined; place++) {
        assert.match(String(at(book, "vendors", place, "source")), /^https:\/\//)
        assert.match(String(at(book, "vendors", place, "as_of")), /^\d{4}-\d{2}-\d{2}$/)
      }
    })
  )

  it.effect("adds what has no price, and leaves an operator's own prices unless they are named", () =>
    Effect.gen(function* () {
      yield* fresh
      yield* put("gpt-5", 99)
      yield* put("o3*", 98)
      const { sql } = yield* Database
      const before = yield* ok("GET", `${prices}/book`)
      const added = yield* importing({ base_hash: at(before, "base_hash") })
      assert.strictEqual(added.status, 200)
      assert.strictEqual(at(yield* ok("GET", `${prices}/gpt-5`), "input_usd_per_million"), 99)
      assert.strictEqual((yield* call("GET", `${prices}/o3`)).status, 404)
      assert.strictEqual(at(yield* ok("GET", `${prices}/claude-opus-5`), "cache_write_usd_per_million"), 6.25)

      const again = yield* importing({ base_hash: at(added.json, "base_hash") })
      assert.deepStrictEqual(at(again.json, "imported"), [])
      const named = yield* importing({ base_hash: at(added.json, "base_hash"), models: ["gpt-5", "o3", "gpt-5"] })
      assert.deepStrictEqual(
        [0, 1, 2].map((place) => at(named.json, "imported", place, "model")),
        ["gpt-5", "o3", undefined]
      )
      assert.strictEqual(at(yield* ok("GET", `${prices}/gpt-5`), "input_usd_per_million"), 1.25)
      const events = yield* sql`SELECT target_id, before_json->>'input_usd_per_million' AS before,
        after_json->>'input_usd_per_million' AS after FROM audit_events WHERE action = 'prices:upsert'
        ORDER BY sequence DESC LIMIT 2`
      assert.deepStrictEqual(events, [
        { target_id: "o3", before: null, after: "2" },
        { target_id: "gpt-5", before: "99", after: "1.25" }
      ])
    })
  )

  it.effect("refuses prices that changed since, and models that it does not have, and changes nothing", () =>
    Effect.gen(function* () {
      yield* fresh
      const base_hash = at(yield* ok("GET", `${prices}/book`), "base_hash")
      const unknown = yield* importing({ base_hash, models: ["gpt-5", "imagined"] })
      assert.deepStrictEqual(refusalOf(unknown), { status: 400, code: "invalid_configuration", param: "models" })
      assert.include(unknown.text, "imagined")
      yield* put("ours", 1)
      const late = yield* importing({ base_hash, models: ["gpt-5"] })
      assert.deepStrictEqual(refusalOf(late), { status: 409, code: "configuration_changed", param: "base_hash" })
      const stored = yield* ok("GET", prices)
      assert.deepStrictEqual([at(stored, 0, "model"), at(stored, 1)], ["ours", undefined])
    })
  )
})
