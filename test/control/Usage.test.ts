import { randomUUID } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Database } from "../../src/services/Database.ts"
import { admin, at, call, ok, refusalOf, suite } from "./Listener.ts"

const events = `${admin}/usage/events`
const summary = `${admin}/usage/summary`

/** 2026-05-05T12:00:00Z. */
const noon = "2026-05-05T12:00:00"

const Moments = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))).check(
  Schema.isMaxLength(12)
)
const Size = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 }))

suite("Usage", (it) => {
  it.effect.prop(
    "pages, put together, are the whole list in its order, also where many rows share a microsecond",
    [Moments, Size],
    ([moments, size]) =>
      Effect.gen(function* () {
        const key_id = randomUUID()
        const made = yield* Effect.forEach(moments, (micros) =>
          record({ key_id, created_at: `${noon}.00000${micros}Z` })
        )
        const expected = moments
          .map((micros, index) => ({ micros, id: made[index] ?? "" }))
          .sort((a, b) => b.micros - a.micros || (a.id < b.id ? 1 : -1))
          .map(({ id }) => id)
        const pages: Array<ReadonlyArray<unknown>> = []
        let cursor: unknown = null
        do {
          const page = yield* ok("GET", `${events}?key_id=${key_id}&limit=${size}${cursor ? `&cursor=${cursor}` : ""}`)
          pages.push(idsOf(page))
          cursor = at(page, "next_cursor")
        } while (cursor !== null)
        assert.deepStrictEqual(pages.flat(), expected)
        assert.isTrue(pages.slice(0, -1).every((page) => page.length === size))
      }),
    { arbitrary: { runs: 25 } }
  )

  it.effect("a row shows tokens, their source and the cost in dollars", () =>
    Effect.gen(function* () {
      const key_id = randomUUID()
      const id = yield* record({
        key_id,
        created_at: `${noon}.123456Z`,
        model: "m",
        input_tokens: 10,
        output_tokens: 5,
        total_tokens: 15,
        cached_input_tokens: 4,
        cache_write_tokens: 0,
        reasoning_tokens: 2,
        usage_source: "reported",
        cost_nanos: 1_500_000,
        cost_source: "service_default_fixed",
        cost_mode: "fixed",
        pricing_rule_name: "long",
        service_name: "summary",
        http_method: "POST",
        endpoint_path: "/jobs/7",
        endpoint_template: "/jobs/{id}",
        guardrail_action_count: 2
      })
      const page = yield* ok("GET", `${events}?key_id=${key_id}`)
      assert.deepStrictEqual(at(page, "rows", 0), {
        id,
        created_at: "2026-05-05T12:00:00.123Z",
        request_id: "r",
        key_id,
        project_id: null,
        route: "/v1/responses",
        model: "m",
        provider: "upstream",
        status: "success",
        status_code: 200,
        error_code: null,
        latency_ms: 7,
        usage_source: "reported",
        input_tokens: 10,
        output_tokens: 5,
        total_tokens: 15,
        cached_input_tokens: 4,
        cache_write_tokens: 0,
        reasoning_tokens: 2,
        estimated_cost_usd: 0.0015,
        cost_source: "service_default_fixed",
        cost_mode: "fixed",
        pricing_rule_name: "long",
        streamed: false,
        service_name: "summary",
        http_method: "POST",
        endpoint_path: "/jobs/7",
        endpoint_template: "/jobs/{id}",
        task_id: null,
        run_id: null,
        trace_id: null,
        fallback_count: 0,
        guardrail_action_count: 2
      })
    })
  )

  it.effect("every filter is an exact match; from is inside the range and to outside", () =>
    Effect.gen(function* () {
      const key_id = randomUUID()
      const project_id = randomUUID()
      const trace_id = "0af7651916cd43dd8448eb211c80319c"
      const first = yield* record({ key_id, created_at: `${noon}Z`, model: "one", trace_id })
      const second = yield* record({
        key_id,
        created_at: "2026-05-05T13:00:00Z",
        model: "two",
        project_id,
        route: "/v1/messages",
        provider: "compat",
        status: "failure",
        status_code: 429
      })
      const found = (query: string) => Effect.map(ok("GET", `${events}?key_id=${key_id}&${query}`), idsOf)
      assert.deepStrictEqual(yield* found("model=one"), [first])
      assert.deepStrictEqual(yield* found("model=on"), [])
      assert.deepStrictEqual(yield* found(`trace_id=${trace_id}`), [first])
      assert.deepStrictEqual(yield* found(`project_id=${project_id}`), [second])
      assert.deepStrictEqual(yield* found("route=%2Fv1%2Fmessages"), [second])
      assert.deepStrictEqual(yield* found("provider=compat"), [second])
      assert.deepStrictEqual(yield* found("status=failure"), [second])
      assert.deepStrictEqual(yield* found("status_code=200"), [first])
      assert.deepStrictEqual(yield* found(`from=${noon}Z&to=2026-05-05T13:00:00Z`), [first])
      assert.deepStrictEqual(yield* found("from=2026-05-05T15:00:00%2B02:00"), [second])
      const backwards = yield* call("GET", `${events}?from=2026-05-05T13:00:00Z&to=${noon}Z`)
      assert.deepStrictEqual(refusalOf(backwards), { status: 400, code: "invalid_usage_query", param: "from" })
      assert.strictEqual((yield* call("GET", `${summary}?from=${noon}Z&to=${noon}Z`)).status, 400)
    })
  )

  it.effect("the summary adds up what matches", () =>
    Effect.gen(function* () {
      const key_id = randomUUID()
      const add = (row: object) => record({ key_id, created_at: `${noon}Z`, ...row })
      yield* add({
        usage_source: "reported",
        input_tokens: 10,
        output_tokens: 1,
        total_tokens: 11,
        cost_nanos: 2_000_000_000
      })
      yield* add({ usage_source: "estimated", input_tokens: 5, total_tokens: 5, cached_input_tokens: 3, cost_nanos: 1 })
      yield* add({ status: "failure", status_code: 403, error_code: "guardrail_blocked", latency_ms: 1 })
      yield* add({ status: "failure", status_code: 429, fallback_count: 2 })
      yield* add({ status: "failure", status_code: 402 })
      assert.deepStrictEqual(yield* ok("GET", `${summary}?key_id=${key_id}`), {
        request_count: 5,
        success_count: 2,
        failure_count: 3,
        reported_count: 1,
        estimated_count: 1,
        status_only_count: 3,
        input_tokens: 15,
        output_tokens: 1,
        total_tokens: 16,
        cached_input_tokens: 3,
        cache_write_tokens: 0,
        reasoning_tokens: 0,
        estimated_cost_usd: 2.000000001,
        total_latency_ms: 29,
        average_latency_ms: 5.8,
        fallback_count: 2,
        fallback_rate: 0.4,
        policy_denial_count: 1,
        rate_limit_denial_count: 1,
        budget_denial_count: 1,
        guardrail_block_count: 1,
        expensive_request_count: 1
      })
      const nothing = yield* ok("GET", `${summary}?key_id=${key_id}&model=none`)
      assert.deepInclude(nothing, {
        request_count: 0,
        estimated_cost_usd: 0,
        average_latency_ms: null,
        fallback_rate: 0
      })
    })
  )
})

/** A usage row as the gateway writes it; its id. */
const record = Effect.fnUntraced(function* (row: Readonly<Record<string, unknown>>) {
  const { sql } = yield* Database
  const id = randomUUID()
  yield* sql`INSERT INTO usage_events ${sql.insert({
    id,
    request_id: "r",
    route: "/v1/responses",
    provider: "upstream",
    status: "success",
    status_code: 200,
    latency_ms: 7,
    usage_source: "status_only",
    cost_source: "none",
    streamed: false,
    ...row
  })}`
  return id
})

const idsOf = (page: Schema.Json): ReadonlyArray<unknown> => {
  const rows = at(page, "rows")
  return Array.isArray(rows) ? rows.map((row) => at(row, "id")) : []
}
