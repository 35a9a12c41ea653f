import { randomBytes, randomUUID } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { sumFinishedBuckets } from "../../src/gateway/usage/SeriesSums.ts"
import { advanceMark } from "../../src/gateway/usage/UsageRollup.ts"
import { Database } from "../../src/services/Database.ts"
import type { UsageRecord } from "../../src/state/UsageRecord.ts"
import { admin, at, ok, suite } from "./Listener.ts"
import * as StoredUsage from "./usage/StoredUsage.ts"

const usage = `${admin}/usage`

const below = (bound: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: bound - 1 }))

/** Three days of quarters of an hour. */
const Quarter = below(3 * 24 * 4)
const start = Date.parse("2026-05-04T22:00:00Z")
const moment = (quarter: number, shift = 0): number => start + quarter * 15 * 60_000 + shift

const Request = Schema.Struct({
  quarter: Quarter,
  shift: below(3),
  key: below(2),
  project: below(3),
  team: below(3),
  priced: below(2),
  route: below(2),
  model: below(3),
  service: below(3),
  endpoint: below(3),
  outcome: below(7),
  tokens: below(4),
  cost: below(4),
  // many have a single request: their sums are read otherwise than those of the others
  task: below(12),
  run: below(3),
  traced: below(2),
  client: below(3),
  subject: below(3),
  session: below(3),
  endUser: below(3),
  fallbacks: below(2)
})
type Request = typeof Request.Type

const maybe = <S extends Schema.Constraint>(schema: S) => Schema.NullOr(schema)
const Filter = Schema.Struct({
  from: maybe(Quarter),
  to: maybe(Quarter),
  key: maybe(below(2)),
  dimension: below(22),
  value: below(3)
})

const keys = [randomUUID(), randomUUID()]
const projects = [randomUUID(), randomUUID()]
const outcomes = [
  [200, undefined],
  [200, undefined],
  [200, "response_body_too_large"],
  [402, "budget_exceeded"],
  [403, "guardrail_blocked"],
  [403, "policy_denied"],
  [429, "rate_limit_exceeded"]
] as const
const named = (name: string, n: number): string | undefined => (n === 0 ? undefined : `${name}-${n}`)
const dearest = 2_500_000_000

const recordOf = (request: Request): UsageRecord => {
  const [status_code, error_code] = outcomes[request.outcome] ?? outcomes[0]
  const service = named("service", request.service)
  const counted = request.tokens > 0
  return {
    id: randomUUID(),
    created_at: moment(request.quarter, request.shift - 1),
    request_id: "r",
    key_id: keys[request.key] ?? "",
    project_id: projects[request.project],
    team_id: named("team", request.team),
    route: request.route === 0 ? "/v1/responses" : "/v1/messages",
    model: named("model", request.model),
    provider: "upstream",
    status_code,
    error_code,
    latency_ms: 10 + request.tokens,
    usage_source: (["status_only", "reported", "estimated", "reported"] as const)[request.tokens] ?? "reported",
    ...(counted && {
      input_tokens: request.tokens,
      output_tokens: request.tokens * 2,
      total_tokens: request.tokens * 3,
      cached_input_tokens: 1
    }),
    cost_nanos: ([undefined, 1, 1_000_000_000, dearest] as const)[request.cost],
    cost_source: request.priced === 0 ? "route_default" : "price_table",
    streamed: false,
    task_id: named("task", request.task),
    run_id: named("run", request.run),
    trace_id: request.traced === 0 ? undefined : "0af7651916cd43dd8448eb211c80319c",
    client: named("client", request.client),
    subject: named("subject", request.subject),
    session_id: named("session", request.session),
    end_user: named("user", request.endUser),
    fallback_count: request.fallbacks,
    service_name: service,
    ...(service !== undefined && {
      http_method: "POST",
      endpoint_path: "/jobs/1",
      endpoint_template: (["/jobs/{id}", undefined, "/jobs/{name}"] as const)[request.endpoint]
    })
  }
}

/** With the name of its model in the sums. */
type Recorded = UsageRecord & { readonly summed_model: string | undefined }

/** An upstream answered for the model. Of models, an operator knows the first alone. */
const answered = ({ cost_nanos, service_name, status_code, usage_source }: UsageRecord) =>
  usage_source === "reported" || (status_code < 400 && (service_name === undefined || (cost_nanos ?? 0) > 0))

/** `before`: the models for which sums say that an upstream answered, when the record is written. */
const summedAfter =
  (before: ReadonlySet<string | null | undefined>) =>
  (record: UsageRecord): Recorded => {
    const isKnown = record.model == null || answered(record) || record.model === "model-1" || before.has(record.model)
    return { ...record, summed_model: isKnown ? (record.model ?? undefined) : "other" }
  }

/** An answer that was cut behind its head has failed, whatever the head said. */
const statusOf = ({ error_code, status_code }: UsageRecord): number =>
  status_code < 400 && error_code !== undefined ? 502 : status_code

const endpointOf = (record: Recorded) => record.endpoint_template ?? record.service_name

/** A query parameter and what it leaves. */
const narrowings = (value: number): ReadonlyArray<readonly [query: string, keeps: (record: Recorded) => boolean]> => [
  ["", () => true],
  ["", () => true],
  [`project_id=${projects[value % 2]}`, (record) => record.project_id === projects[value % 2]],
  [`team_id=team-${value}`, ({ team_id }) => team_id === `team-${value}`],
  [`route=${encodeURIComponent("/v1/messages")}`, (record) => record.route === "/v1/messages"],
  [`model=model-${value}`, (record) => record.summed_model === `model-${value}`],
  ["model=other", (record) => record.summed_model === "other"],
  ["provider=upstream", () => true],
  [`service=service-${value}`, (record) => record.service_name === `service-${value}`],
  ["method=post", (record) => record.http_method === "POST"],
  [`endpoint=${encodeURIComponent("/jobs/{id}")}`, (record) => endpointOf(record) === "/jobs/{id}"],
  ["endpoint=service-1", (record) => endpointOf(record) === "service-1"],
  ["status=failure", (record) => statusOf(record) >= 400],
  [`status_code=${[403, 200, 502][value]}`, (record) => statusOf(record) === [403, 200, 502][value]],
  [`task_id=task-${value}`, ({ task_id }) => task_id === `task-${value}`],
  [`run_id=run-${value}`, ({ run_id }) => run_id === `run-${value}`],
  ["trace_id=0af7651916cd43dd8448eb211c80319c", ({ trace_id }) => trace_id !== undefined],
  [`client=client-${value}`, ({ client }) => client === `client-${value}`],
  [`subject=subject-${value}`, ({ subject }) => subject === `subject-${value}`],
  [`session_id=session-${value}`, ({ session_id }) => session_id === `session-${value}`],
  [`end_user=user-${value}`, ({ end_user }) => end_user === `user-${value}`],
  ["min_cost_usd=2.5", ({ cost_nanos }) => (cost_nanos ?? 0) >= dearest]
]

const summaryOf = (records: ReadonlyArray<Recorded>, expensive: number) => {
  const sum = (of: (record: Recorded) => number | null | undefined) =>
    records.reduce((total, record) => total + (of(record) ?? 0), 0)
  const count = (of: (record: Recorded) => boolean) => records.filter(of).length
  const inputTokens = sum(({ input_tokens }) => input_tokens)
  const latency = sum(({ latency_ms }) => latency_ms)
  const fallbacks = sum(({ fallback_count }) => fallback_count)
  return {
    request_count: records.length,
    success_count: count((record) => statusOf(record) < 400),
    failure_count: count((record) => statusOf(record) >= 400),
    reported_count: count(({ usage_source }) => usage_source === "reported"),
    estimated_count: count(({ usage_source }) => usage_source === "estimated"),
    status_only_count: count(({ usage_source }) => usage_source === "status_only"),
    input_tokens: inputTokens,
    output_tokens: sum(({ output_tokens }) => output_tokens),
    total_tokens: sum(({ total_tokens }) => total_tokens),
    cached_input_tokens: sum(({ cached_input_tokens }) => cached_input_tokens),
    cache_write_tokens: 0,
    reasoning_tokens: 0,
    estimated_cost_usd: sum(({ cost_nanos }) => cost_nanos) / 1_000_000_000,
    cached_share: inputTokens === 0 ? null : sum(({ cached_input_tokens }) => cached_input_tokens) / inputTokens,
    total_latency_ms: latency,
    average_latency_ms: records.length === 0 ? null : latency / records.length,
    fallback_count: fallbacks,
    fallback_rate: records.length === 0 ? 0 : fallbacks / records.length,
    policy_denial_count: count(({ status_code }) => status_code === 403),
    rate_limit_denial_count: count(({ status_code }) => status_code === 429),
    budget_denial_count: count(({ status_code }) => status_code === 402),
    guardrail_block_count: count(({ error_code }) => error_code === "guardrail_blocked"),
    expensive_request_count: count(({ cost_nanos }) => (cost_nanos ?? 0) >= expensive),
    unpriced_request_count: count(isUnpriced)
  }
}

const isUnpriced = ({ cost_source }: UsageRecord) => cost_source === "route_default"

const totalOf = (records: ReadonlyArray<Recorded>, expensive: number) => ({
  ...summaryOf(records, expensive),
  unpriced_models: [...Map.groupBy(records.filter(isUnpriced), labelled.models)]
    .sort(([a, some], [b, others]) => others.length - some.length || (a < b ? -1 : 1))
    .map(([name]) => name)
})

const breakdownOf = (records: ReadonlyArray<Recorded>, expensive: number, label: (record: Recorded) => string) =>
  [...Map.groupBy(records, label)]
    // neither keys nor projects are there, so that nobody knows their names
    .map(([name, group]) => ({ name, display_name: name, summary: summaryOf(group, expensive) }))
    .sort((a, b) => b.summary.request_count - a.summary.request_count || (a.name < b.name ? -1 : 1))

const seriesOf = (records: ReadonlyArray<Recorded>, expensive: number, width: number) =>
  [...Map.groupBy(records, ({ created_at }) => Math.floor(created_at / width) * width)]
    .sort(([a], [b]) => a - b)
    .map(([bucket, group]) => ({ bucket: new Date(bucket).toISOString(), summary: summaryOf(group, expensive) }))

const labelled = {
  projects: (record: Recorded) => record.project_id ?? "individual",
  keys: (record: Recorded) => record.key_id,
  teams: (record: Recorded) => record.team_id ?? "none",
  services: (record: Recorded) => record.service_name ?? "none",
  endpoints: (record: Recorded) =>
    record.http_method === undefined ? "none" : `${record.http_method} ${endpointOf(record)}`,
  providers: (record: Recorded) => record.provider,
  models: (record: Recorded) => record.summed_model ?? "unknown",
  tasks: (record: Recorded) => record.task_id ?? "none"
}
/** The dashboard has no breakdown by these labels. */
const others: Readonly<Record<string, (record: Recorded) => string>> = {
  "by-client": ({ client }) => client ?? "unknown",
  "by-subject": ({ subject }) => subject ?? "none",
  "by-task-type": ({ task_id }) => (task_id == null ? "none" : (taskTypes[task_id] ?? "unknown"))
}
/** The index of tasks does not have all of them. */
const taskTypes: Readonly<Record<string, string>> = {
  "task-1": "scan",
  "task-2": "read",
  "task-3": "scan",
  "task-5": "read",
  "task-8": "scan"
}
/** Only requests with the label count. */
const freeLabels: Readonly<Record<string, (record: Recorded) => string | null | undefined>> = {
  "by-session": ({ session_id }) => session_id,
  "by-end-user": ({ end_user }) => end_user
}
const paths = {
  projects: "by-project",
  keys: "by-key",
  teams: "by-team",
  services: "by-service",
  endpoints: "by-endpoint",
  providers: "by-provider",
  models: "by-model",
  tasks: "by-task"
}

/** The values by which usage can be filtered. */
const values: Readonly<Record<string, (record: Recorded) => string | null | undefined>> = {
  project_id: ({ project_id }) => project_id,
  key_id: ({ key_id }) => key_id,
  team_id: ({ team_id }) => team_id,
  route: ({ route }) => route,
  model: ({ summed_model }) => summed_model,
  provider: ({ provider }) => provider,
  service: ({ service_name }) => service_name,
  endpoint: endpointOf,
  task_id: ({ task_id }) => task_id,
  run_id: ({ run_id }) => run_id,
  client: ({ client }) => client,
  subject: ({ subject }) => subject,
  session_id: ({ session_id }) => session_id,
  end_user: ({ end_user }) => end_user
}

const emptied = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* StoredUsage.empty
  yield* sql`DELETE FROM task_index`
  for (const [task_id, task_type] of Object.entries(taskTypes))
    yield* sql`INSERT INTO task_index (task_id, task_type, status, first_micros, last_micros, is_progress, is_terminal)
      VALUES (${task_id}, ${task_type}, 'done', 1, 2, false, true)`
  yield* sql`DELETE FROM model_prices`
  yield* sql`INSERT INTO model_prices (model, input_nanos_per_million, output_nanos_per_million) VALUES ('model-1', 1, 1)`
})

suite("Sums of usage", (it) => {
  it.effect.prop(
    "whatever is summed up, written late or still to be summed: every answer is the one of the records themselves",
    [
      Schema.Array(Request).check(Schema.isMaxLength(40)),
      Schema.Array(Request).check(Schema.isMaxLength(10)),
      Quarter,
      Schema.Boolean,
      Schema.Array(Filter).check(Schema.isBetweenLength(3, 3))
    ],
    ([early, late, mark, isNarrow, filters]) =>
      Effect.gen(function* () {
        yield* emptied
        const first = early.map(recordOf)
        const succeeded = first.filter(
          (record) => answered(record) && statusOf(record) < 400 && record.created_at < moment(mark)
        )
        const second = late.map(recordOf)
        yield* StoredUsage.write(first)
        yield* Effect.repeat(advanceMark(moment(mark), 7), { while: (more) => more })
        if (isNarrow) yield* sumFinishedBuckets
        yield* StoredUsage.write(second)
        const records = [
          ...first.map(summedAfter(new Set())),
          ...second.map(summedAfter(new Set(succeeded.map(({ model }) => model))))
        ]
        for (const { dimension, from, key, to, value } of filters) {
          const [narrowing, keeps] = narrowings(value)[dimension] ?? ["", () => true]
          // a range that ends before it begins is refused
          const end = to === null || (from !== null && to <= from) ? null : to
          const query = [
            ...(narrowing === "" ? [] : [narrowing]),
            ...(from === null ? [] : [`from=${new Date(moment(from)).toISOString()}`]),
            ...(end === null ? [] : [`to=${new Date(moment(end)).toISOString()}`]),
            ...(key === null ? [] : [`key_id=${keys[key]}`])
          ].join("&")
          const among = records.filter(
            (record) =>
              (from === null || record.created_at >= moment(from)) &&
              (end === null || record.created_at < moment(end)) &&
              (key === null || record.key_id === keys[key])
          )
          const matching = among.filter(keeps)
          const expensive = narrowing.startsWith("min_cost") ? dearest : 1_000_000_000
          const expected = summaryOf(matching, expensive)
          const total = totalOf(matching, expensive)
          assert.deepStrictEqual(yield* ok("GET", `${usage}/summary?${query}`), total, query)
          const dashboard = yield* ok("GET", `${usage}/dashboard?${query}&interval=day`)
          assert.deepStrictEqual(at(dashboard, "summary"), expected)
          const days = seriesOf(matching, expensive, 24 * 3_600_000)
          assert.deepStrictEqual(at(dashboard, "timeseries"), days)
          const hours = seriesOf(matching, expensive, 3_600_000)
          assert.deepStrictEqual(yield* ok("GET", `${usage}/timeseries?${query}`), hours)
          for (const [name, label] of Object.entries(labelled)) {
            const groups = breakdownOf(matching, expensive, label)
            assert.deepStrictEqual(at(dashboard, "breakdowns", name), groups, `${name} ${query}`)
          }
          for (const [name, path] of Object.entries(paths)) {
            assert.deepStrictEqual(yield* ok("GET", `${usage}/${path}?${query}`), at(dashboard, "breakdowns", name))
          }
          for (const [path, label] of Object.entries(others)) {
            const groups = breakdownOf(matching, expensive, label)
            assert.deepStrictEqual(yield* ok("GET", `${usage}/${path}?${query}`), groups, `${path} ${query}`)
          }
          for (const [path, label] of Object.entries(freeLabels)) {
            const groups = breakdownOf(
              matching.filter((record) => label(record) != null),
              expensive,
              (record) => label(record) ?? ""
            )
            assert.deepStrictEqual(yield* ok("GET", `${usage}/${path}?${query}`), groups, `${path} ${query}`)
          }
          const page = yield* ok("GET", `${usage}/events?${query}&limit=100&sort_order=asc`)
          const exported = yield* ok("GET", `${usage}/export.json?${query}`)
          const sent = /^model=(.*)$/.exec(narrowing)?.[1]
          const listed = sent === undefined ? matching : among.filter(({ model }) => model === sent)
          const counted = (row: Schema.Json) => ({ ...Object(row), ...zeros(row) })
          assert.deepStrictEqual(at(exported, "rows"), rowsOf(page).map(counted))
          assert.deepStrictEqual(at(exported, "summary"), total)
          // single events have the name that the client sent
          assert.lengthOf(rowsOf(page), listed.length)
        }
        // everything behind the mark follows, and nothing is counted twice
        yield* Effect.repeat(advanceMark(moment(400), 7), { while: (more) => more })
        assert.deepStrictEqual(yield* ok("GET", `${usage}/summary`), totalOf(records, 1_000_000_000))
        yield* sumFinishedBuckets
        const dashboard = yield* ok("GET", `${usage}/dashboard`)
        assert.deepStrictEqual(at(dashboard, "timeseries"), seriesOf(records, 1_000_000_000, 3_600_000))
        for (const [name, label] of Object.entries(labelled)) {
          const groups = breakdownOf(records, 1_000_000_000, label)
          assert.deepStrictEqual(at(dashboard, "breakdowns", name), groups, name)
        }
        for (const [field, value] of Object.entries(values)) {
          const known = new Set(records.map(value).filter((one) => one != null))
          const read = yield* ok("GET", `${usage}/filter-values?field=${field}`)
          assert.deepStrictEqual(at(read, "values"), [...known].sort(), field)
        }
        for (const sort of ["requests", "cost", "failures", "success", "latency", "tokens", "fallbacks"]) {
          const tasks = yield* ok("GET", `${usage}/by-task?sort_by=${sort}&sort_order=asc`)
          const pages = yield* Effect.forEach([0, 4, 8], (offset) =>
            ok("GET", `${usage}/by-task?sort_by=${sort}&sort_order=asc&breakdown_limit=4&breakdown_offset=${offset}`)
          )
          assert.deepStrictEqual(pages.flatMap(rowsIn), rowsIn(tasks), sort)
          assert.sameDeepMembers([...rowsIn(tasks)], breakdownOf(records, 1_000_000_000, labelled.tasks))
          const weights = rowsIn(tasks).map((group) => weightOf(sort, group))
          assert.deepStrictEqual(
            weights,
            weights.toSorted((a, b) => a - b),
            sort
          )
        }
      }),
    { arbitrary: { runs: 6 } }
  )

  it.effect("the mark moves by steps of bounded size, never back and never beyond where it is sent", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* emptied
      yield* StoredUsage.write(Array.from({ length: 10 }, (_, quarter) => recordOf({ ...plain, quarter })))
      const mark = Effect.map(sql<{ until: Date }>`SELECT until FROM usage_rolled`, ([row]) => row?.until.getTime())
      const summed = Effect.map(
        sql<{
          sum: string | null
        }>`SELECT sum(request_count)::text AS sum FROM usage_rollups WHERE grain = 'hour' AND part = 'overview'`,
        ([row]) => Number(row?.sum)
      )
      assert.deepStrictEqual([yield* advanceMark(moment(8), 4), yield* mark, yield* summed], [true, moment(4), 4])
      assert.deepStrictEqual([yield* advanceMark(moment(8), 4), yield* mark, yield* summed], [false, moment(8), 8])
      assert.deepStrictEqual([yield* advanceMark(moment(8), 4), yield* mark, yield* summed], [false, moment(8), 8])
      assert.deepStrictEqual([yield* advanceMark(moment(3), 4), yield* mark, yield* summed], [false, moment(8), 8])
      assert.deepStrictEqual([yield* advanceMark(moment(20), 4), yield* mark, yield* summed], [false, moment(20), 10])
    })
  )

  it.effect("the paths of a service without templates are one series, which has its name", () =>
    Effect.gen(function* () {
      yield* emptied
      const same = recordOf({ ...plain, quarter: 4, service: 1, endpoint: 1 })
      yield* StoredUsage.write(
        Array.from({ length: 9 }, (_, n) => ({ ...same, id: randomUUID(), endpoint_path: `/jobs/${n}` }))
      )
      yield* Effect.repeat(advanceMark(moment(8), 3), { while: (more) => more })
      const { sql } = yield* Database
      const rows =
        yield* sql`SELECT endpoint, request_count FROM usage_rollups WHERE grain = 'day' AND part = 'untasked'`
      assert.deepStrictEqual(rows, [{ endpoint: "service-1", request_count: 9n }])
    })
  )

  it.effect("model names that clients invent are one series, and events keep them", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* emptied
      yield* sql`DELETE FROM policy_layers`
      yield* sql`INSERT INTO policy_layers (layer_kind, scope_id, policy) VALUES ('model', 'layered', '{}'),
        ('team', 'them', '{"allowed_models":["of-a-layer"]}'), ('team', 'others', '{"allowed_models":null}')`
      yield* sql`INSERT INTO api_keys (id, owner_type, key_prefix, key_hash, policy)
        VALUES (${keys[0]}, 'individual', 'rk_live_', ${randomBytes(32)}, '{"allowed_models":["of-the-key"]}')`
      const status_only = { ...recordOf({ ...plain, quarter: 4, tokens: 0 }), total_tokens: 1 }
      const refused = (model: string) => ({ ...status_only, id: randomUUID(), status_code: 403, model })
      const served = (model: string) => ({ ...status_only, id: randomUUID(), status_code: 200, model })
      const ofService = (model: string, cost_nanos?: number) => ({ ...served(model), service_name: "s", cost_nanos })
      yield* StoredUsage.write([served("answered"), refused("later-answered"), ofService("free"), ofService("paid", 1)])
      yield* Effect.repeat(advanceMark(moment(5), 7), { while: (more) => more })
      yield* StoredUsage.write([
        ...["answered", "model-1", "layered", "of-a-layer", "of-the-key", "invented", "free"].map(refused),
        ...[1, 2, 3].map((n) => refused(`invented-${n}`)),
        { ...refused("blocked"), usage_source: "reported" as const },
        served("later-answered")
      ])
      yield* Effect.repeat(advanceMark(moment(8), 7), { while: (more) => more })
      const rows = yield* sql<{ model: string; sum: string }>`SELECT model, sum(request_count)::text FROM usage_rollups
        WHERE grain = 'day' AND part = 'untasked' GROUP BY model ORDER BY model`
      assert.deepStrictEqual(
        rows.map(({ model, sum }) => `${model} ${sum}`),
        [
          "answered 2",
          "blocked 1",
          "later-answered 1",
          "layered 1",
          "model-1 1",
          "of-a-layer 1",
          "of-the-key 1"
        ].concat(["other 7", "paid 1"])
      )
      assert.lengthOf(rowsOf(yield* ok("GET", `${usage}/events?model=invented-2`)), 1)
      assert.strictEqual(at(yield* ok("GET", `${usage}/summary?model=other`), "request_count"), 7)
      yield* sql`DELETE FROM policy_layers`
    })
  )

  it.effect("more records of one millisecond than a step takes hold nothing up", () =>
    Effect.gen(function* () {
      yield* emptied
      const same = recordOf({ ...plain, quarter: 4 })
      yield* StoredUsage.write(Array.from({ length: 9 }, () => ({ ...same, id: randomUUID() })))
      yield* Effect.repeat(advanceMark(moment(8), 3), { while: (more) => more })
      const { sql } = yield* Database
      const rows = yield* sql`SELECT request_count FROM usage_rollups WHERE grain = 'day' AND part = 'overview'`
      assert.deepStrictEqual(rows, [{ request_count: 9n }])
    })
  )
})

const plain = {
  shift: 1,
  key: 0,
  project: 0,
  team: 0,
  priced: 1,
  route: 0,
  model: 0,
  service: 0,
  endpoint: 0,
  outcome: 0,
  tokens: 1,
  cost: 0,
  task: 0,
  run: 0,
  traced: 0,
  client: 0,
  subject: 0,
  session: 0,
  endUser: 0,
  fallbacks: 0
}

const weightOf = (sort: string, group: unknown): number => {
  const { summary } = Object(group)
  const weights: Readonly<Record<string, number>> = {
    requests: summary.request_count,
    cost: summary.estimated_cost_usd,
    failures: summary.failure_count,
    success: summary.success_count,
    latency: summary.average_latency_ms,
    tokens: summary.total_tokens,
    fallbacks: summary.fallback_count
  }
  return weights[sort] ?? 0
}

const rowsIn = (json: Schema.Json): ReadonlyArray<unknown> => (Array.isArray(json) ? json : [])

const rowsOf = (page: Schema.Json): ReadonlyArray<Schema.Json> => {
  const rows = at(page, "rows")
  return Array.isArray(rows) ? rows : []
}

/** An export says 0 where an event says that nobody knows. */
const zeros = (row: Schema.Json) =>
  Object.fromEntries(
    [
      "input_tokens",
      "output_tokens",
      "total_tokens",
      "cached_input_tokens",
      "cache_write_tokens",
      "reasoning_tokens"
    ].map((name) => [name, at(row, name) ?? 0])
  )
