import { randomUUID } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect, Layer, Metric, Schema, Stream } from "effect"
import * as InstrumentedSql from "../../../layers/postgres/InstrumentedSql.ts"
import { Operator } from "../../../src/control/api/schema/Security.ts"
import { BoundedQueries } from "../../../src/control/store/BoundedQueries.ts"
import { UsageEvents } from "../../../src/control/usage/UsageEvents.ts"
import { Database } from "../../../src/services/Database.ts"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, call, idOf, ok, refusalOf, suite } from "../Listener.ts"

const usage = `${admin}/usage`
const events = `${usage}/events`
const summary = `${usage}/summary`

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
        guardrail_action_count: 2,
        upstream_ms: 5,
        first_byte_ms: 3,
        gateway_ms: 2,
        subject: "ada",
        end_user: "bob",
        session_id: "s-1",
        client: "codex"
      })
      const { sql } = yield* Database
      for (const [place, [request_id, mode, ms]] of (
        [
          ["r", "pre_call", 1],
          ["r", "pre_call", 2],
          ["r", "post_call", 4],
          ["another", "pre_call", 8]
        ] as const
      ).entries())
        yield* sql`INSERT INTO guardrail_execution_events (id, created_at, request_id, key_id, route, provider,
            guardrail_name, mode, action, failure_policy, latency_ms)
          VALUES (gen_random_uuid(), ${`${noon}.1234${57 + place}Z`}::timestamptz, ${request_id}, ${key_id}, '/v1/responses',
            'upstream', 'pii-redact', ${mode}, 'allow', 'fail_open', ${ms})`
      const page = yield* ok("GET", `${events}?key_id=${key_id}`)
      assert.deepStrictEqual(at(page, "rows", 0), {
        id,
        created_at: "2026-05-05T12:00:00.123Z",
        request_id: "r",
        key_id,
        key_name: null,
        key_prefix: null,
        project_id: null,
        project_name: null,
        team_id: null,
        route: "/v1/responses",
        model: "m",
        provider: "upstream",
        status: "success",
        status_code: 200,
        error_code: null,
        denied_by: null,
        denied_in_layer: null,
        latency_ms: 7,
        upstream_ms: 5,
        first_byte_ms: 3,
        gateway_ms: 2,
        usage_source: "reported",
        input_tokens: 10,
        output_tokens: 5,
        total_tokens: 15,
        cached_input_tokens: 4,
        cache_write_tokens: 0,
        reasoning_tokens: 2,
        cached_share: 0.4,
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
        subject: "ada",
        end_user: "bob",
        session_id: "s-1",
        client: "codex",
        fallback_count: 0,
        guardrail_action_count: 2,
        pre_call_ms: 3
      })
    })
  )

  it.effect("a row does not tell the time of guardrails whose executions are deleted", () =>
    Effect.gen(function* () {
      const key_id = randomUUID()
      yield* record({ key_id, created_at: `${noon}.5Z`, guardrail_action_count: 1 })
      yield* record({ key_id, created_at: `${noon}.4Z` })
      const page = yield* ok("GET", `${events}?key_id=${key_id}`)
      assert.deepStrictEqual(
        [0, 1].map((row) => at(page, "rows", row, "pre_call_ms")),
        [null, 0]
      )
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
      const third = yield* record({
        key_id,
        request_id: "third",
        created_at: `${noon}.5Z`,
        latency_ms: 900,
        status: "failure",
        status_code: 429,
        error_code: "rate_limit_exceeded",
        denial: JSON.stringify({ check: "rpm_limit", layer: "team:blue" })
      })
      for (const query of [
        "min_latency_ms=900",
        "request_id=third",
        "error_code=rate_limit_exceeded",
        "denied_by=rpm_limit"
      ]) {
        assert.deepStrictEqual(yield* found(query), [third], query)
        assert.strictEqual(at(yield* ok("GET", `${summary}?key_id=${key_id}&${query}`), "request_count"), 1, query)
      }
      assert.deepStrictEqual(yield* found("min_latency_ms=901"), [])
      const refused = at(yield* ok("GET", `${events}?request_id=third`), "rows", 0)
      assert.deepInclude(refused, { denied_by: "rpm_limit", denied_in_layer: "team:blue" })
      const backwards = yield* call("GET", `${events}?from=2026-05-05T13:00:00Z&to=${noon}Z`)
      assert.deepStrictEqual(refusalOf(backwards), { status: 400, code: "invalid_usage_query", param: "from" })
      assert.strictEqual((yield* call("GET", `${summary}?from=${noon}Z&to=${noon}Z`)).status, 400)
    })
  )

  it.effect("a range may be said in days: a date, yesterday, today and now, all in UTC", () =>
    Effect.gen(function* () {
      const key_id = randomUUID()
      const now = Date.now()
      const at = (hours: number) => new Date(now - (now % 86_400_000) + hours * 3_600_000).toISOString()
      const before = yield* record({ key_id, created_at: at(-25) })
      const begins = yield* record({ key_id, created_at: at(-24) })
      const ends = yield* record({ key_id, created_at: at(-0.001) })
      const today = yield* record({ key_id, created_at: at(0) })
      const found = (query: string) =>
        Effect.map(ok("GET", `${events}?key_id=${key_id}&sort_order=asc&${query}`), idsOf)
      assert.deepStrictEqual(yield* found("from=yesterday&to=today"), [begins, ends])
      assert.deepStrictEqual(yield* found("from=yesterday"), [begins, ends, today])
      assert.deepStrictEqual(yield* found("from=today&to=now"), [today])
      assert.deepStrictEqual(yield* found(`to=${at(-24).slice(0, 10)}`), [before])
      assert.deepStrictEqual(yield* found(`from=${at(0).slice(0, 10)}`), [today])
      for (const from of ["2026-02-30", "2026-2-3", "tomorrow", "Yesterday", ""]) {
        const refused = yield* call("GET", `${events}?from=${from}`)
        assert.deepInclude(refusalOf(refused), { status: 422, param: "from" })
        assert.include(refused.text, "yesterday")
      }
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
      yield* add({
        usage_source: "estimated",
        input_tokens: 5,
        total_tokens: 5,
        cached_input_tokens: 3,
        cost_nanos: 1
      })
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
        cached_share: 0.2,
        average_latency_ms: 5.8,
        fallback_count: 2,
        fallback_rate: 0.4,
        policy_denial_count: 1,
        rate_limit_denial_count: 1,
        budget_denial_count: 1,
        guardrail_block_count: 1,
        expensive_request_count: 1,
        unpriced_request_count: 0,
        unpriced_models: []
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

  it.effect("events are ordered by what they cost, took, used and came to; what nobody knows comes last", () =>
    Effect.gen(function* () {
      const key_id = randomUUID()
      const add = (row: object) => record({ key_id, created_at: `${noon}Z`, ...row })
      const a = yield* add({ cost_nanos: 1, latency_ms: 30, total_tokens: 2, status_code: 200 })
      const b = yield* add({ cost_nanos: 3, latency_ms: 10, total_tokens: 1, status: "failure", status_code: 500 })
      const c = yield* add({ latency_ms: 20, status: "failure", status_code: 404 })
      const sorted = (query: string) => Effect.map(ok("GET", `${events}?key_id=${key_id}&${query}`), idsOf)
      assert.deepStrictEqual(yield* sorted("sort_by=cost"), [b, a, c])
      assert.deepStrictEqual(yield* sorted("sort_by=cost&sort_order=asc"), [a, b, c])
      assert.deepStrictEqual(yield* sorted("sort_by=latency"), [a, c, b])
      assert.deepStrictEqual(yield* sorted("sort_by=tokens"), [a, b, c])
      assert.deepStrictEqual(yield* sorted("sort_by=status_code"), [b, c, a])
      const second = yield* ok("GET", `${events}?key_id=${key_id}&sort_by=cost&limit=1&offset=1`)
      assert.deepStrictEqual(idsOf(second), [a])
      assert.deepInclude(second, { limit: 1, offset: 1, has_more: true, next_cursor: null })
    })
  )

  it.effect("time runs either way, and pages follow by offset or by cursor", () =>
    Effect.gen(function* () {
      const key_id = randomUUID()
      const ids = yield* Effect.forEach([0, 1, 2, 3], (second) => record({ key_id, created_at: `${noon}.${second}Z` }))
      const newest = yield* ok("GET", `${events}?key_id=${key_id}&limit=3&offset=1`)
      assert.deepStrictEqual(idsOf(newest), [ids[2], ids[1], ids[0]])
      assert.deepInclude(newest, { limit: 3, offset: 1, has_more: false, next_cursor: null })
      const oldest = yield* ok("GET", `${events}?key_id=${key_id}&sort_order=asc&limit=3`)
      assert.deepStrictEqual(idsOf(oldest), ids.slice(0, 3))
      const cursor = at(oldest, "next_cursor")
      const rest = yield* ok("GET", `${events}?key_id=${key_id}&sort_order=asc&cursor=${cursor}`)
      assert.deepStrictEqual(idsOf(rest), ids.slice(3))
    })
  )

  it.effect("what would read too much is refused, with the way out", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const refused = (query: string) => Effect.map(call("GET", `${events}?${query}`), refusalOf)
      const unusable = (param: string) => ({ status: 400, code: "invalid_usage_query", param })
      assert.deepStrictEqual(yield* refused("offset=10001"), unusable("offset"))
      const cursor = at(yield* ok("GET", `${events}?limit=1`), "next_cursor")
      assert.deepStrictEqual(yield* refused(`sort_by=cost&cursor=${cursor}`), unusable("cursor"))
      const key_id = randomUUID()
      yield* sql`INSERT INTO usage_events (id, created_at, request_id, key_id, route, provider, status, status_code,
          latency_ms, usage_source, cost_source, streamed)
        SELECT gen_random_uuid(), '2001-01-01Z'::timestamptz + n * interval '1 second', 'r', ${key_id}::uuid, '/v1/responses',
          'upstream', 'success', 200, n, 'status_only', 'none', false FROM generate_series(1, 100001) AS n`
      const many = `key_id=${key_id}&sort_by=latency&limit=1`
      assert.deepStrictEqual(yield* refused(many), unusable("sort_by"))
      const fewer = yield* ok("GET", `${events}?${many}&from=2001-01-01T00:00:02Z`)
      assert.strictEqual(at(fewer, "rows", 0, "latency_ms"), 100_001)
      yield* sql`DELETE FROM usage_events WHERE key_id = ${key_id}`
    })
  )

  it.effect("sessions and end users of too many requests are refused, with the way out", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const key_id = randomUUID()
      yield* sql`INSERT INTO usage_events (id, created_at, request_id, key_id, route, provider, status, status_code,
          latency_ms, usage_source, cost_source, streamed, session_id, end_user)
        SELECT gen_random_uuid(), '2001-01-01Z'::timestamptz + n * interval '1 millisecond', 'r', ${key_id}::uuid,
          '/v1/responses', 'upstream', 'success', 200, n, 'status_only', 'none', false, 's-' || n % 3, 'u'
        FROM generate_series(1, 100001) AS n`
      const many = `key_id=${key_id}&to=2001-01-02T00:00:00Z&from=2001-01-01T00`
      for (const path of ["by-session", "by-end-user"]) {
        const refused = yield* call("GET", `${usage}/${path}?${many}:00:00Z`)
        assert.deepStrictEqual(refusalOf(refused), { status: 400, code: "invalid_usage_query", param: "from" })
      }
      const fewer = yield* ok("GET", `${usage}/by-session?${many}:00:01Z&sort_by=latency`)
      assert.deepStrictEqual([at(fewer, 0, "name"), at(fewer, 0, "summary", "request_count")], ["s-2", 33_001])
      yield* sql`DELETE FROM usage_events WHERE key_id = ${key_id}`
    })
  )

  it.effect("breakdowns come in the order asked for, a page at a time", () =>
    Effect.gen(function* () {
      const project_id = randomUUID()
      const add = (row: object) => record({ key_id: randomUUID(), project_id, created_at: `${noon}Z`, ...row })
      yield* add({ model: "a", latency_ms: 100, cost_nanos: 5, total_tokens: 1 })
      yield* add({ model: "b", latency_ms: 10, total_tokens: 9, fallback_count: 3 })
      yield* add({ model: "b", latency_ms: 20, status: "failure", status_code: 500 })
      yield* add({ latency_ms: 1 })
      const names = (query: string) =>
        Effect.map(ok("GET", `${usage}/by-model?project_id=${project_id}&${query}`), (json) =>
          Array.isArray(json) ? json.map((group) => at(group, "name")) : json
        )
      assert.deepStrictEqual(yield* names(""), ["b", "a", "unknown"])
      assert.deepStrictEqual(yield* names("sort_order=asc"), ["a", "unknown", "b"])
      assert.deepStrictEqual(yield* names("sort_by=cost"), ["a", "b", "unknown"])
      assert.deepStrictEqual(yield* names("sort_by=failures"), ["b", "a", "unknown"])
      assert.deepStrictEqual(yield* names("sort_by=success&sort_order=asc"), ["a", "b", "unknown"])
      assert.deepStrictEqual(yield* names("sort_by=latency"), ["a", "b", "unknown"])
      assert.deepStrictEqual(yield* names("sort_by=tokens"), ["b", "a", "unknown"])
      assert.deepStrictEqual(yield* names("sort_by=fallbacks"), ["b", "a", "unknown"])
      assert.deepStrictEqual(yield* names("breakdown_limit=1&breakdown_offset=1"), ["a"])
      const odd = { cached_input_tokens: 1, input_tokens: 3, output_tokens: 1, reasoning_tokens: 1 }
      yield* add({ model: "c", ...odd, status: "failure", status_code: 403 })
      yield* add({ model: "c", status: "failure", status_code: 429 })
      yield* add({ model: "c", cost_source: "route_default", status: "failure", error_code: "guardrail_blocked" })
      for (const by of [
        ...["input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens"],
        ...["refusals", "guardrail_blocks", "unpriced_requests"]
      ])
        for (const path of ["by-model", "by-task"])
          assert.strictEqual(
            at(yield* ok("GET", `${usage}/${path}?project_id=${project_id}&sort_by=${by}`), 0, "name"),
            path === "by-model" ? "c" : "none",
            by
          )
    })
  )

  it.effect("who used what: keys, projects and teams have the names that people know, beside their ids", () =>
    Effect.gen(function* () {
      const project_id = yield* Fixtures.project
      const project = yield* ok("GET", `${admin}/projects/${project_id}`)
      const body = { project_id, name: "ada's laptop", team_id: `blue ${project_id}` }
      const named = at(yield* ok("POST", `${admin}/keys`, { body }), "key")
      const nameless = at(yield* ok("POST", `${admin}/keys`, { body: { project_id } }), "key")
      const [first, second] = [String(at(named, "id")), String(at(nameless, "id"))]
      const gone = randomUUID()
      const add = (row: object) => record({ created_at: `${noon}Z`, project_id, ...row })
      yield* add({ key_id: first, team_id: body.team_id, total_tokens: 3 })
      yield* add({ key_id: second, total_tokens: 2 })
      yield* add({ key_id: gone, total_tokens: 1 })

      const names = (path: string) =>
        Effect.map(ok("GET", `${usage}/${path}?project_id=${project_id}&sort_by=tokens`), (json) =>
          Array.isArray(json) ? json.map((group) => [at(group, "name"), at(group, "display_name")]) : json
        )
      assert.deepStrictEqual<unknown>(yield* names("by-key"), [
        [first, "ada's laptop"],
        [second, at(nameless, "key_prefix")],
        [gone, gone]
      ])
      assert.deepStrictEqual<unknown>(yield* names("by-project"), [[project_id, at(project, "name")]])
      assert.deepStrictEqual<unknown>(yield* names("by-team"), [
        [body.team_id, body.team_id],
        ["none", "none"]
      ])
      const ofTeam = new URLSearchParams({ team_id: body.team_id })
      assert.deepInclude(yield* ok("GET", `${summary}?${ofTeam}`), { request_count: 1, total_tokens: 3 })

      const page = yield* ok("GET", `${events}?${ofTeam}`)
      const known = {
        key_name: "ada's laptop",
        key_prefix: at(named, "key_prefix"),
        project_name: at(project, "name"),
        team_id: body.team_id
      }
      assert.deepInclude(at(page, "rows", 0), known)
      const csv = (yield* call("GET", `${usage}/export.csv?${ofTeam}`)).text.split("\r\n")
      assert.isTrue(csv[0]?.includes(",key_name,key_prefix,project_name,team_id,"))
      assert.isTrue(csv[1]?.includes(`,${Object.values(known).join(",")},`), csv[1])
      const exported = yield* ok("GET", `${usage}/export.json?${ofTeam}`)
      assert.deepInclude(at(exported, "rows", 0), known)

      const values = (field: string, q: unknown) =>
        Effect.map(ok("GET", `${usage}/filter-values?${new URLSearchParams({ field, q: String(q) })}`), (json) =>
          at(json, "values")
        )
      assert.deepStrictEqual(yield* values("team_id", body.team_id), [body.team_id])
      assert.deepStrictEqual(yield* values("key_id", first.slice(0, 20)), [first])
      assert.deepStrictEqual(yield* values("project_id", project_id), [project_id])
    })
  )

  it.effect("the summary counts the requests whose model has no price, and names the models", () =>
    Effect.gen(function* () {
      const key_id = randomUUID()
      const add = (row: object) => record({ key_id, created_at: `${noon}Z`, ...row })
      yield* add({ model: "priced", cost_source: "price_table", cost_nanos: 5 })
      for (const model of ["rare", "often", "often", null]) {
        yield* add({ model, cost_source: "route_default", cost_nanos: 10_000_000 })
      }
      const total = yield* ok("GET", `${summary}?key_id=${key_id}`)
      assert.deepInclude(total, { unpriced_request_count: 4, unpriced_models: ["often", "rare", "unknown"] })
      const byModel = yield* ok("GET", `${usage}/by-model?key_id=${key_id}&sort_by=cost`)
      assert.deepStrictEqual(
        [0, 1, 2, 3].map((place) => at(byModel, place, "summary", "unpriced_request_count")),
        [2, 1, 1, 0]
      )
    })
  )

  it.effect("a series has a page of its buckets", () =>
    Effect.gen(function* () {
      const key_id = randomUUID()
      for (const hour of ["10:59:59.999", "11:00:00", "13:00:00"]) {
        yield* record({ key_id, created_at: `2026-05-05T${hour}Z`, service_name: hour === "11:00:00" ? "s" : null })
      }
      const buckets = (series: Schema.Json | undefined) =>
        Array.isArray(series) ? series.map((entry) => at(entry, "bucket")) : series
      const hours = ["2026-05-05T10:00:00.000Z", "2026-05-05T11:00:00.000Z", "2026-05-05T13:00:00.000Z"]
      const series = (query: string) => Effect.map(ok("GET", `${usage}/timeseries?key_id=${key_id}${query}`), buckets)
      assert.deepStrictEqual(yield* series(""), hours)
      assert.deepStrictEqual(yield* series("&timeseries_limit=1&timeseries_offset=1"), [hours[1]])
      assert.deepStrictEqual(yield* series("&interval=day"), ["2026-05-05T00:00:00.000Z"])
      const dashboard = yield* ok("GET", `${usage}/dashboard?key_id=${key_id}&timeseries_limit=2`)
      assert.deepStrictEqual(buckets(at(dashboard, "timeseries")), hours.slice(0, 2))
      assert.deepStrictEqual(at(dashboard, "timeseries_page"), { limit: 2, offset: 0, has_more: true })
      assert.deepInclude(at(dashboard, "service_timeseries", 0), { bucket: hours[1], name: "s" })
      assert.deepStrictEqual(at(dashboard, "service_timeseries_page"), { limit: 744, offset: 0, has_more: false })
    })
  )

  it.effect("values of filters begin with what was typed", () =>
    Effect.gen(function* () {
      const prefix = randomUUID()
      const values = (field: string, query: string) =>
        Effect.map(ok("GET", `${usage}/filter-values?field=${field}&${query}`), (json) => at(json, "values"))
      const created_at = `${noon}Z`
      const key_id = randomUUID()
      for (const end of ["b", "a", "b", "%"]) {
        const name = `${prefix}${end}`
        const named = { service_name: name, http_method: "POST", endpoint_path: name, task_id: name, run_id: name }
        const told = { client: name, subject: name, session_id: name, end_user: name }
        yield* record({ key_id, created_at, model: name, route: name, provider: name, ...named, ...told })
      }
      const ofRequests = ["route", "provider", "service", "endpoint", "model", "task_id", "run_id"]
      for (const field of [...ofRequests, "client", "subject", "session_id", "end_user"]) {
        const found = [`${prefix}%`, `${prefix}a`, `${prefix}b`]
        assert.deepStrictEqual(yield* values(field, `q=${prefix}`), found, field)
        assert.deepStrictEqual(yield* values(field, `q=${prefix}&limit=2`), found.slice(0, 2))
        assert.deepStrictEqual(yield* values(field, `q=${encodeURIComponent(`${prefix}%`)}`), [`${prefix}%`])
      }
      const answer = yield* call("GET", `${usage}/filter-values?field=latency_ms`)
      assert.deepStrictEqual(refusalOf(answer), { status: 400, code: "invalid_usage_query", param: "field" })
    })
  )

  it.effect("a key is unused in a range without a request of it", () =>
    Effect.gen(function* () {
      const project_id = yield* Fixtures.project
      const minted = yield* Effect.forEach([1, 2], () => ok("POST", `${admin}/keys`, { body: { project_id } }))
      const [used = "", unused = ""] = minted.map((json) => idOf(json, "key"))
      yield* record({ key_id: used, project_id, created_at: `${noon}Z` })
      const keysIn = (query: string) =>
        Effect.map(ok("GET", `${usage}/unused-keys?project_id=${project_id}&${query}`), (json) =>
          Array.isArray(json) ? json.map((key) => at(key, "key_id")) : json
        )
      assert.deepStrictEqual(yield* keysIn(""), [unused])
      assert.deepStrictEqual(yield* keysIn(`from=${noon}Z`), [unused])
      assert.deepStrictEqual(yield* keysIn(`to=${noon}Z`), [unused, used])
      assert.deepStrictEqual(yield* keysIn(`to=${noon}Z&limit=1`), [unused])
      const [row] = Object.values(Object(yield* ok("GET", `${usage}/unused-keys?project_id=${project_id}`)))
      assert.hasAllKeys(row, ["key_id", "name", "key_prefix", "project_id", "created_at", "last_used_at"])
    })
  )

  it.effect("a task, a key and a project have a summary of their own", () =>
    Effect.gen(function* () {
      const project_id = yield* Fixtures.project
      const key_id = idOf(yield* ok("POST", `${admin}/keys`, { body: { project_id } }), "key")
      const task_id = randomUUID()
      yield* record({ key_id, project_id, task_id, created_at: `${noon}Z`, total_tokens: 4 })
      yield* record({ key_id, project_id, created_at: `${noon}Z`, total_tokens: 3 })
      const tokens = (path: string) => Effect.map(ok("GET", `${admin}/${path}`), (json) => at(json, "total_tokens"))
      assert.strictEqual(yield* tokens(`tasks/${task_id}/usage`), 4)
      assert.strictEqual(yield* tokens(`keys/${key_id}/usage`), 7)
      assert.strictEqual(yield* tokens(`projects/${project_id}/usage`), 7)
      assert.strictEqual(yield* tokens(`projects/${project_id}/usage?task_id=${task_id}`), 4)
      assert.strictEqual(yield* tokens(`tasks/${randomUUID()}/usage`), 0)
      const status = (path: string) => Effect.map(call("GET", `${admin}/${path}`), refusalOf)
      const nobody = randomUUID()
      assert.deepInclude(yield* status(`keys/${nobody}/usage`), { status: 404, code: "not_found" })
      assert.deepInclude(yield* status(`projects/${nobody}/usage`), { status: 404, code: "missing_project" })
    })
  )

  it.effect("an export is a file, oldest first, in the columns of the reference, and behind them the names", () =>
    Effect.gen(function* () {
      const key_id = randomUUID()
      const add = (second: number, row: object) => record({ key_id, created_at: `${noon}.${second}Z`, ...row })
      const late = { model: "=cmd()", task_id: "a,b", cost_nanos: 1_500_000_001, total_tokens: 7, endpoint_path: "/x" }
      yield* add(2, late)
      yield* add(1, {})
      const csv = yield* call("GET", `${usage}/export.csv?key_id=${key_id}`)
      assert.strictEqual(csv.headers["content-type"], "text/csv; charset=utf-8")
      assert.strictEqual(csv.headers["content-disposition"], 'attachment; filename="svc-usage.csv"')
      assert.deepStrictEqual(csv.text.split("\r\n"), [
        "request_id,key_id,project_id,route,model,provider,status,status_code,latency_ms,input_tokens,output_tokens," +
          "total_tokens,estimated_cost_usd,service_name,task_id,run_id,trace_id,fallback_count,guardrail_action_count," +
          "created_at,cost_source,cost_mode,pricing_rule_name,http_method,endpoint_path,endpoint_template,key_name,key_prefix,project_name,team_id," +
          "upstream_ms,first_byte_ms,gateway_ms,subject,end_user,session_id,client,cached_share,denied_by,denied_in_layer,pre_call_ms",
        `r,${key_id},,/v1/responses,,upstream,success,200,7,0,0,0,,,,,,0,0,2026-05-05T12:00:00.100Z,none,,,,,,,,,,,,,,,,,,,,0`,
        `r,${key_id},,/v1/responses,'=cmd(),upstream,success,200,7,0,0,7,1.500000001,,"a,b",,,0,0,` +
          "2026-05-05T12:00:00.200Z,none,,,,/x,,,,,,,,,,,,,,,,0",
        ""
      ])
      const json = yield* call("GET", `${usage}/export.json?key_id=${key_id}&limit=1&offset=1`)
      assert.strictEqual(json.headers["content-type"], "application/json")
      assert.strictEqual(json.headers["content-disposition"], 'attachment; filename="svc-usage.json"')
      assert.strictEqual(at(json.json, "summary", "request_count"), 2)
      assert.deepInclude(at(json.json, "rows", 0), { model: "=cmd()", input_tokens: 0, total_tokens: 7 })
      assert.lengthOf(Object(at(json.json, "rows")), 1)
      const refused = yield* call("GET", `${usage}/export.csv?limit=10001`)
      assert.deepStrictEqual(refusalOf(refused), { status: 422, code: "invalid_request", param: "limit" })
    })
  )

  it.effect("an export reads a batch when the one before it is taken, and with all of them has no limit", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const key_id = randomUUID()
      yield* sql`INSERT INTO usage_events (id, created_at, request_id, key_id, route, provider, status, status_code,
          latency_ms, usage_source, cost_source, streamed)
        SELECT gen_random_uuid(), '2002-01-01Z'::timestamptz + n / 3 * interval '1 millisecond', n, ${key_id}::uuid,
          '/v1/responses', 'upstream', 'success', 200, n, 'status_only', 'none', false
        FROM generate_series(1, 12000) AS n`
      const { batches } = yield* UsageEvents
      const sent = Effect.map(Metric.value(InstrumentedSql.statements), ({ count }) => Number(count))
      const stream = yield* batches({ key_id, all: "true" })
      const before = yield* sent
      const [first, second] = yield* Stream.runCollect(Stream.take(stream, 2))
      assert.deepStrictEqual([first?.length, second?.length], [500, 500])
      assert.isBelow((yield* sent) - before, 10)
      const lines = (yield* call("GET", `${usage}/export.csv?key_id=${key_id}&all=true`)).text.split("\r\n")
      const requests = lines.slice(1, -1).map((line) => Number(line.split(",")[0]))
      assert.strictEqual(new Set(requests).size, 12_000)
      assert.strictEqual(requests.length, 12_000)
      const short = (yield* call("GET", `${usage}/export.csv?key_id=${key_id}`)).text.split("\r\n")
      assert.lengthOf(short, 1002)
      yield* sql`DELETE FROM usage_events WHERE key_id = ${key_id}`
    }).pipe(
      Effect.provide(Layer.provide(UsageEvents.layer, BoundedQueries.layer)),
      Effect.provideService(Operator, { tokenId: null, scopes: ["*"], ip: null, userAgent: null })
    )
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
