import { randomUUID } from "node:crypto"
import { assert } from "@effect/vitest"
import { Clock, Effect, Schema } from "effect"
import { sumFinishedBuckets } from "../../../src/gateway/usage/SeriesSums.ts"
import { sumLearnedTypes } from "../../../src/gateway/usage/TaskTypeSums.ts"
import { advanceMark, advanceMinutes } from "../../../src/gateway/usage/UsageRollup.ts"
import { Database } from "../../../src/services/Database.ts"
import type { UsageRecord } from "../../../src/state/UsageRecord.ts"
import { admin, at, call, ok, refusalOf, suite } from "../Listener.ts"
import * as StoredUsage from "./StoredUsage.ts"

const series = `${admin}/usage/timeseries`
const minute = 60_000

const below = (bound: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: bound - 1 }))

const Request = Schema.Struct({
  /** Before now, in steps of twenty seconds. */
  ago: below(3 * 60 * 3),
  key: below(2),
  project: below(2),
  model: below(3),
  code: below(3),
  task: below(4),
  latency: below(50_000),
  firstByte: Schema.NullOr(below(5_000)),
  tokens: below(9)
})
type Request = typeof Request.Type
const Ago = below(4 * 60 * 3)

const keys = [randomUUID(), randomUUID()]
const projects = [randomUUID(), undefined]
const tasks = ["scan-1", "scan-2", "forgotten", undefined]
/** The index of tasks does not have all of them. */
const taskTypes: Readonly<Record<string, string>> = { "scan-1": "scan", "scan-2": "scan" }

const indexed = Effect.fnUntraced(function* (types: typeof taskTypes) {
  const { sql } = yield* Database
  yield* sql`DELETE FROM task_index`
  for (const [task_id, task_type] of Object.entries(types))
    yield* sql`INSERT INTO task_index (task_id, task_type, status, first_micros, last_micros, is_progress, is_terminal)
      VALUES (${task_id}, ${task_type}, 'done', 1, 2, false, true)`
})

const recordOf = (request: Request, now: number): UsageRecord => ({
  id: randomUUID(),
  created_at: now - request.ago * 20_000,
  request_id: "r",
  key_id: keys[request.key] ?? "",
  project_id: projects[request.project],
  route: "/v1/responses",
  model: ["a", "b", undefined][request.model],
  provider: request.code % 2 === 0 ? "upstream" : "compat",
  client: ["curl", undefined][request.key],
  status_code: [200, 429, 500][request.code] ?? 200,
  error_code: [undefined, "rate_limit_exceeded", "upstream_error"][request.code],
  latency_ms: request.latency,
  first_byte_ms: request.firstByte,
  gateway_ms: request.firstByte === null ? null : request.latency % 7,
  upstream_ms: request.firstByte === null ? null : request.latency - (request.latency % 7),
  usage_source: "reported",
  total_tokens: request.tokens,
  task_id: tasks[request.task],
  cost_source: "none",
  streamed: false,
  fallback_count: 0
})

const splits: Readonly<Record<string, (record: UsageRecord) => string>> = {
  key: ({ key_id }) => key_id,
  project: ({ project_id }) => project_id ?? "individual",
  model: ({ model }) => model ?? "unknown",
  status: ({ status_code }) => (status_code < 400 ? "success" : "failure"),
  code: ({ status_code }) => String(status_code)
}

/** These have no quantiles, as the splits by team, service, endpoint and subject. */
const plainSplits: typeof splits = {
  provider: ({ provider }) => provider,
  client: ({ client }) => client ?? "unknown",
  task_type: ({ task_id }) => (task_id == null ? "none" : (taskTypes[task_id] ?? "unknown"))
}

/** A query parameter and what it leaves. */
const filters: ReadonlyArray<readonly [query: string, keeps: (record: UsageRecord) => boolean]> = [
  ["", () => true],
  [`key_id=${keys[0]}`, ({ key_id }) => key_id === keys[0]],
  [`project_id=${projects[0]}`, ({ project_id }) => project_id === projects[0]],
  ["model=b", ({ model }) => model === "b"],
  ["status=failure", ({ status_code }) => status_code >= 400],
  ["status_code=429", ({ status_code }) => status_code === 429],
  ["provider=upstream", ({ provider }) => provider === "upstream"],
  ["client=codex", () => false],
  [
    `key_id=${keys[1]}&model=a&status=success`,
    (record) => record.key_id === keys[1] && record.model === "a" && record.status_code < 400
  ]
]

const intervals = [
  ["minute", minute],
  ["hour", 60 * minute],
  ["day", 24 * 60 * minute]
] as const

/** Sums by the hour and day have histograms for such queries only. */
const isOneDimension = (narrowing: string, split: string): boolean => {
  const [name = ""] = narrowing.split("=")
  if (narrowing.includes("&") || name === "provider" || name === "client") return false
  const dimension = ["key_id", "project_id", "model"].includes(name) ? name.replace("_id", "") : undefined
  return dimension === undefined || !["key", "project", "model"].includes(split) || split === dimension
}

const request = { ago: 1, key: 0, project: 0, model: 0, code: 0, task: 3, latency: 1, firstByte: null, tokens: 1 }

/** The smallest value that is not below the given share of them. */
const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(values.length * share) - 1)] ?? 0

const measures = ["latency_ms", "first_byte_ms", "gateway_ms", "upstream_ms"] as const

suite("Usage by the minute", (it) => {
  it.effect.prop(
    "has every request up to now once, in its minute and group, and quantiles within two per cent",
    [
      Schema.Array(Request).check(Schema.isMaxLength(40)),
      Schema.Array(Request).check(Schema.isMaxLength(10)),
      Ago,
      Schema.NullOr(Ago),
      Schema.Boolean,
      Schema.Array(below(filters.length)).check(Schema.isBetweenLength(2, 2))
    ],
    ([early, late, mark, from, sumAgain, chosen]) =>
      Effect.gen(function* () {
        yield* StoredUsage.empty
        yield* indexed(taskTypes)
        const now = yield* Clock.currentTimeMillis
        const first = early.map((request) => recordOf(request, now))
        const second = late.map((request) => recordOf(request, now))
        yield* StoredUsage.write(first)
        yield* Effect.repeat(advanceMark(now - mark * 20_000, 7), { while: (more) => more })
        yield* Effect.repeat(advanceMinutes(now - mark * 20_000, 7), { while: (more) => more })
        yield* sumFinishedBuckets
        yield* StoredUsage.write(second)
        if (sumAgain) yield* sumFinishedBuckets
        // The default range is the hour before its end.
        const range =
          from === null
            ? `to=${new Date(now + 1).toISOString()}`
            : `from=${new Date(now - from * 20_000).toISOString()}`
        for (const [filter, [interval, width]] of chosen.flatMap((filter) =>
          intervals.map((of) => [filter, of] as const)
        )) {
          const open = interval === "minute" ? now + 1 - 60 * minute : Number.NEGATIVE_INFINITY
          const start = from === null ? open : now - from * 20_000
          const [narrowing, keeps] = filters[filter] ?? ["", () => true]
          const matching = [...first, ...second].filter((record) => keeps(record) && record.created_at >= start)
          for (const [split, labelOf] of [
            ["", () => ""] as const,
            ...Object.entries(splits),
            ...Object.entries(plainSplits)
          ]) {
            const isPlain = split in plainSplits
            if (!isPlain && interval !== "minute" && !isOneDimension(narrowing, split)) continue
            const quantiles = isPlain ? "" : "&quantiles=p50,p99"
            const query = [`interval=${interval}${quantiles}`, range, narrowing, split && `split=${split}`]
              .filter(Boolean)
              .join("&")
            const found = yield* ok("GET", `${series}?${query}`)
            const groups = Map.groupBy(
              matching,
              (record) => `${new Date(Math.floor(record.created_at / width) * width).toISOString()} ${labelOf(record)}`
            )
            const rows = Array.isArray(found) ? found : []
            assert.deepStrictEqual(
              rows.map((row) => `${at(row, "bucket")} ${at(row, "name") ?? ""}`),
              [...groups.keys()].sort(),
              query
            )
            for (const row of rows) {
              const group = groups.get(`${at(row, "bucket")} ${at(row, "name") ?? ""}`) ?? []
              assert.strictEqual(at(row, "summary", "request_count"), group.length, query)
              assert.strictEqual(
                at(row, "summary", "total_tokens"),
                group.reduce((sum, { total_tokens }) => sum + (total_tokens ?? 0), 0)
              )
              if (isPlain) continue
              // Histograms of hours and days get late requests when they are summed again.
              if (interval !== "minute" && !sumAgain) continue
              for (const measure of measures) {
                const values = group.flatMap((record) => record[measure] ?? [])
                for (const [name, share] of [
                  ["p50", 0.5],
                  ["p99", 0.99]
                ] as const) {
                  const value = at(row, "quantiles", measure, name)
                  if (values.length === 0) assert.isUndefined(value)
                  else {
                    const exact = quantile(values, share)
                    assert.closeTo(Number(value), exact, exact * 0.0201, `${measure} ${name} ${query}`)
                  }
                }
              }
            }
          }
        }
        if (from === null || !sumAgain) return
        for (const measure of measures) {
          const exact = [...first, ...second]
            .filter(({ created_at }) => created_at >= now - from * 20_000)
            .flatMap((record) => record[measure] ?? [])
            .sort((a, b) => a - b)
          const bars = yield* ok("GET", `${admin}/usage/histogram?measure=${measure}&${range}`)
          const counted = (Array.isArray(bars) ? bars : []).flatMap((bar) =>
            Array.from({ length: Number(at(bar, "request_count")) }, () => Number(at(bar, "ms")))
          )
          assert.strictEqual(counted.length, exact.length)
          for (const [place, ms] of exact.entries()) assert.closeTo(counted[place] ?? -1, ms, ms * 0.0201)
        }
      }),
    { arbitrary: { runs: 12 } }
  )

  it.effect("durations at the ends of what is counted together are told within two per cent as well", () =>
    Effect.gen(function* () {
      yield* StoredUsage.empty
      const now = yield* Clock.currentTimeMillis
      const shortest = 12_104
      yield* StoredUsage.write([recordOf({ ...request, latency: shortest }, now)])
      yield* Effect.repeat(advanceMinutes(now, 7), { while: (more) => more })
      const bars = yield* ok(
        "GET",
        `${admin}/usage/histogram?measure=latency_ms&from=${new Date(now - 60 * minute).toISOString()}`
      )
      assert.closeTo(Number(at(bars, 0, "ms")), shortest, shortest * 0.0201)
    })
  )

  it.effect("hours and days are split into the groups with the most requests", () =>
    Effect.gen(function* () {
      yield* StoredUsage.empty
      const now = yield* Clock.currentTimeMillis
      const plain = { ...request, ago: 3 * 60 * 2 }
      yield* StoredUsage.write(
        [plain, { ...plain, model: 1 }, { ...plain, model: 1 }, { ...plain, model: 2 }].map((request) =>
          recordOf(request, now)
        )
      )
      yield* Effect.repeat(advanceMark(now), { while: (more) => more })
      for (const interval of ["hour", "day"]) {
        const found = yield* ok("GET", `${series}?interval=${interval}&split=model&split_limit=2`)
        assert.deepStrictEqual(
          [0, 1, 2].map((row) => [at(found, row, "name"), at(found, row, "summary", "request_count")]),
          [
            ["a", 1],
            ["b", 2],
            [undefined, undefined]
          ]
        )
      }
    })
  )

  const typedPaths = ["timeseries?split=task_type", "timeseries?interval=day&split=task_type", "by-task-type"]
  const countsOf = (path: string) =>
    Effect.map(ok("GET", `${admin}/usage/${path}`), (found) =>
      Object.fromEntries(
        (Array.isArray(found) ? found : []).map((row) => [at(row, "name"), at(row, "summary", "request_count")])
      )
    )

  /** Requests of yesterday, of these tasks. */
  const writeTyped = Effect.fnUntraced(function* (places: ReadonlyArray<number>) {
    const now = yield* Clock.currentTimeMillis
    yield* StoredUsage.write(places.map((task) => recordOf({ ...request, ago: 3 * 60 * 24, task }, now)))
    yield* Effect.repeat(advanceMark(now), { while: (more) => more })
    yield* Effect.repeat(advanceMinutes(now), { while: (more) => more })
  })

  it.effect(
    "types of tasks that the index learns a day later are counted, and stay when it has removed the tasks",
    () =>
      Effect.gen(function* () {
        yield* StoredUsage.empty
        yield* writeTyped([0, 0, 2, 3])
        const steps: ReadonlyArray<readonly [types: typeof taskTypes, expected: Readonly<Record<string, number>>]> = [
          [{}, { none: 1, unknown: 3 }],
          [taskTypes, { none: 1, scan: 2, unknown: 1 }],
          [{}, { none: 1, scan: 2, unknown: 1 }]
        ]
        for (const [types, expected] of steps) {
          yield* indexed(types)
          yield* sumFinishedBuckets
          yield* sumLearnedTypes
          for (const path of typedPaths) assert.deepStrictEqual(yield* countsOf(path), expected, path)
        }
      })
  )

  it.effect("types of tasks are complete where a process of an older version has summed up", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* StoredUsage.empty
      yield* indexed(taskTypes)
      yield* writeTyped([0, 2, 3])
      yield* sumFinishedBuckets
      yield* sql`CREATE TABLE former_types AS SELECT * FROM usage_series WHERE dimension = 'task_type'`
      yield* writeTyped([1])
      yield* sumFinishedBuckets
      const expected = { none: 1, scan: 2, unknown: 1 }
      // it has no such sums, and adds a late request to all others
      yield* sql`DELETE FROM usage_series WHERE dimension = 'task_type'`
      for (const path of typedPaths) assert.deepStrictEqual(yield* countsOf(path), expected, path)
      yield* sql`INSERT INTO usage_series SELECT * FROM former_types`
      for (const path of typedPaths) assert.deepStrictEqual(yield* countsOf(path), expected, path)
      yield* sumFinishedBuckets
      // without the index, these are the sums alone
      yield* indexed({})
      for (const path of typedPaths) assert.deepStrictEqual(yield* countsOf(path), expected, path)
      yield* sql`DROP TABLE former_types`
    })
  )

  it.effect("what sums by the minute cannot say is refused, with the way out", () =>
    Effect.gen(function* () {
      const refused = (query: string) => Effect.map(call("GET", `${series}?${query}`), refusalOf)
      const now = yield* Clock.currentTimeMillis
      const old = new Date(now - 49 * 60 * minute).toISOString()
      const invalid = { status: 400, code: "invalid_usage_query", param: "from" }
      assert.deepStrictEqual(yield* refused(`interval=minute&from=${old}`), invalid)
      assert.deepStrictEqual(yield* refused("interval=minute&to=2026-01-01T00:00:00Z"), invalid)
      const soon = new Date(now - minute).toISOString()
      assert.deepStrictEqual(yield* refused(`interval=minute&from=${soon}&to=${soon}`), invalid)
      const unsplit = yield* refused("interval=day&quantiles=p50&provider=upstream")
      assert.deepStrictEqual(unsplit, { ...invalid, param: "quantiles" })
      for (const split of ["provider", "task_type"]) {
        const plain = yield* refused(`interval=minute&quantiles=p50&split=${split}`)
        assert.deepStrictEqual(plain, { ...invalid, param: "quantiles" })
      }
      assert.deepInclude(yield* refused("quantiles=p42"), { status: 422, param: "quantiles" })
      assert.deepInclude(yield* refused("split=colour"), { status: 422, param: "split" })
    })
  )
})
