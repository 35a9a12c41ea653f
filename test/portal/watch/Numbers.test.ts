import { assert, describe, it } from "@effect/vitest"
import { ApiError } from "../../../src/portal/api/ApiError.ts"
import { alarmsOf } from "../../../src/portal/pages/board/alarms.ts"
import { isLong } from "../../../src/portal/pages/board/longRunning.ts"
import { wordsOfStep } from "../../../src/portal/pages/dead-letters/replays/jobWords.ts"
import { ofAsked, ofKeys, ofLimits, sorted } from "../../../src/portal/pages/home/attention/findings.ts"
import { ofGuardrails } from "../../../src/portal/pages/home/attention/guardrailFindings.ts"
import {
  ofHealth,
  ofHub,
  ofLetters,
  ofQueues,
  ofSystem,
  ofTraffic
} from "../../../src/portal/pages/home/attention/serverFindings.ts"
import { readBudget } from "../../../src/portal/pages/home/first/budget.ts"
import { spendByProject } from "../../../src/portal/pages/home/spendByProject.ts"
import { heatRows, levelOf } from "../../../src/portal/pages/limits/heat.ts"
import { burnDown, windowOf } from "../../../src/portal/pages/limits/key/burnDownPoints.ts"
import { raiseProblems } from "../../../src/portal/pages/limits/raise/raiseProblems.ts"
import { type ModelPrice, orderOfPrices, sortedPrices } from "../../../src/portal/pages/models/prices.ts"
import { partsOf as timeOf } from "../../../src/portal/pages/requests/list/parts.ts"
import { barsOf } from "../../../src/portal/pages/system/histogram.ts"
import { filtersOf, groupOf } from "../../../src/portal/pages/usage/breakdown/groups.ts"
import { combined, measureOf } from "../../../src/portal/pages/usage/breakdown/measures.ts"
import { drawParts, largestParts } from "../../../src/portal/pages/usage/breakdown/parts.ts"
import { peakSentence } from "../../../src/portal/shared/charts/peak.ts"
import { bucketCount, filled } from "../../../src/portal/shared/usage/buckets.ts"
import { raiseEndsText, usedUpText } from "../../../src/portal/shared/words/format.ts"
import { csvLine } from "../../../src/portal/shared/words/saveText.ts"

const hourMs = 3_600_000
const day = Date.UTC(2026, 10, 26)

const summary = (cost: number) => ({
  request_count: 1,
  success_count: 1,
  failure_count: 0,
  reported_count: 1,
  estimated_count: 0,
  status_only_count: 0,
  input_tokens: 0,
  output_tokens: 0,
  total_tokens: 0,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  cached_share: null,
  estimated_cost_usd: cost,
  total_latency_ms: 0,
  average_latency_ms: 0,
  fallback_count: 0,
  fallback_rate: 0,
  policy_denial_count: 0,
  rate_limit_denial_count: 0,
  budget_denial_count: 0,
  guardrail_block_count: 0,
  expensive_request_count: 0,
  unpriced_request_count: 0
})

const bucket = (hour: number, cost: number) => ({
  bucket: new Date(day + hour * hourMs).toISOString(),
  summary: summary(cost)
})

const limit = (share: number | null, meter: "rpm_limit" | "daily_budget_usd" = "daily_budget_usd", name = "ada") => ({
  meter,
  unit: meter === "rpm_limit" ? ("requests" as const) : ("usd" as const),
  window: meter === "rpm_limit" ? ("minute" as const) : ("day" as const),
  scope: "key" as const,
  scope_id: name,
  scope_name: name,
  owner_email: null,
  project_name: null,
  team_id: null,
  within: null,
  state: "counted" as const,
  limit: 10,
  used: share === null ? null : share * 10,
  reserved: 0,
  remaining: null,
  share,
  resets_at: new Date(day + 24 * hourMs).toISOString(),
  raised_until: null,
  forecast: null
})

describe("spend by project", () => {
  const range = { from: new Date(day), to: new Date(day + 24 * hourMs) }
  const ofProjects = (count: number) =>
    Array.from({ length: count }, (_, n) => ({ ...bucket(0, n + 1), name: `p${n}`, display_name: `P ${n}` }))

  it("draws seven projects, and the rest of the whole as all others, also of projects that were not read", () => {
    const { points, series } = spendByProject(range, [bucket(0, 100)], ofProjects(9))
    assert.deepStrictEqual(
      series.map(({ label }) => label),
      ["P 8", "P 7", "P 6", "P 5", "P 4", "P 3", "P 2", "all others"]
    )
    const values = points[0]?.values ?? {}
    assert.strictEqual(values["p8"], 9)
    const drawn = series.reduce((sum, { key }) => sum + (values[key] ?? 0), 0)
    assert.strictEqual(drawn, 100)
  })

  it("has no others where all projects are drawn, and none below zero", () => {
    const { points, series } = spendByProject(range, [bucket(0, 2)], ofProjects(2))
    assert.strictEqual(series.length, 2)
    assert.isTrue(Object.values(points[0]?.values ?? {}).every((value) => value !== null && value >= 0))
  })
})

describe("a budget", () => {
  const window = windowOf({ window: "day", resets_at: new Date(day + 24 * hourMs).toISOString() })

  it("burns down to what the counter says is left, and on to zero at two rates", () => {
    const now = day + 10 * hourMs
    // 1 in the first hour, 4 in the ninth: the latest rate is the higher one
    const { endsAtLatestRate, points } = burnDown(
      { limit: 10, used: 5, reserved: 0 },
      window,
      [bucket(0, 1), bucket(9, 4)],
      now
    )
    const left = points.flatMap(({ at, values }) =>
      values["left"] === null ? [] : [[(at - day) / hourMs, values["left"]]]
    )
    assert.deepStrictEqual(left.slice(0, 3), [
      [0, 10],
      [1, 9],
      [2, 9]
    ])
    assert.deepStrictEqual(left.at(-1), [10, 5])
    const end = points.at(-1)
    assert.strictEqual(end?.at, window.to)
    assert.strictEqual(end?.values["even"], 0)
    assert.strictEqual(end?.values["latest"], 0)
    assert(endsAtLatestRate !== undefined && endsAtLatestRate > now && endsAtLatestRate < day + 14 * hourMs)
  })

  it("that nobody uses lasts", () => {
    const { endsAtLatestRate, points } = burnDown({ limit: 10, used: 0, reserved: 0 }, window, [], day + hourMs)
    assert.isUndefined(endsAtLatestRate)
    assert.strictEqual(points.at(-1)?.values["latest"], 10)
  })

  it("of a month begins with the month of its reset", () => {
    const month = windowOf({ window: "month", resets_at: "2026-12-01T00:00:00.000Z" })
    assert.deepStrictEqual([month.from, month.to], [Date.UTC(2026, 10), Date.UTC(2026, 11)])
  })
})

describe("the heat map", () => {
  it("has a row for each owner, the fullest first, and the fullest of several limits of a kind", () => {
    const rows = heatRows([limit(0.2), limit(0.9), limit(null, "rpm_limit"), limit(0.95, "rpm_limit", "bob")])
    assert.deepStrictEqual(
      rows.map(({ cells, owner, worst }) => [owner.name, worst, cells.daily_budget_usd?.share]),
      [
        ["bob", 0.95, undefined],
        ["ada", 0.9, 0.9]
      ]
    )
    assert.deepStrictEqual([null, 0.1, 0.5, 0.8, 1].map(levelOf), ["unknown", "low", "half", "high", "full"])
  })
})

describe("what needs attention", () => {
  const at = (iso: string) => iso.slice(0, 10)

  it("is a used-up budget, one that will be, a key that ends, and a queue without a consumer; the worst first", () => {
    const forecast = { ...limit(0.6), forecast: "2026-11-26T20:00:00.000Z" }
    const now = Date.parse("2026-11-26T12:00:00Z")
    const key = {
      id: "k",
      name: null,
      key_prefix: "rk_live_1",
      expires_at: "2026-11-28T00:00:00Z",
      rotation_due_at: null
    }
    const found = sorted([
      ...ofKeys([key, { ...key, id: "later", expires_at: "2027-01-01T00:00:00Z" }], now, at),
      ...ofLimits([limit(1), forecast, limit(1, "rpm_limit"), limit(0.2)], at),
      ...ofQueues([
        { queue: "a", state: "no consumer" },
        { queue: "b", state: "well" },
        { queue: "c", state: "alarm" },
        { queue: "d", state: "alarm" }
      ]),
      ...ofLetters([
        { queue_name: "b.dlq", open_count: 0 },
        { queue_name: "c.dlq", open_count: 8 }
      ])
    ])
    assert.deepStrictEqual(
      found.map(({ sentence, weight }) => [weight, sentence]),
      [
        [3, "has used up daily_budget_usd"],
        [3, "The broker lacks memory or disk and takes no messages: an alarm for 2 queues"],
        [3, "has no consumer"],
        [2, "expires 2026-11-28"],
        [2, "will have daily_budget_usd used up 2026-11-26 at this rate"],
        [2, "has 8 open dead letters: tasks that have failed for good"]
      ]
    )
  })

  it("is a holder who asks for a limit, for a model, or for more of what they do not know", () => {
    const asked = { id: "1", key_name: "ada", key_prefix: "rk_live_1", meter: null, model: null, reason: "a demo" }
    const sentences = ofAsked([asked, { ...asked, meter: "rpm_limit" }, { ...asked, model: "large" }])
    assert.deepStrictEqual(
      sentences.map(({ sentence }) => sentence),
      ["asks for more: a demo", "asks for more rpm_limit: a demo", "asks for the model large: a demo"]
    )
  })

  it("is a server that does not respond, and data that ends with the process", () => {
    const door = { door: "redis", variant: "memory", lost_at_exit: true, reachable: true, since: null }
    const away = { ...door, door: "broker", lost_at_exit: false, reachable: false, since: "2026-11-26T20:00:00Z" }
    assert.deepStrictEqual(
      ofSystem({ checks: { configuration: "behind" }, doors: [door, away] }, at).map(({ sentence }) => sentence),
      [
        "is unreachable, 2026-11-26",
        "The configuration in force is behind",
        "This process loses its data when it ends: redis is within it"
      ]
    )
    assert.deepStrictEqual(ofSystem({ checks: { configuration: "current" }, doors: [] }, at), [])
  })

  it("is an upstream that is unhealthy, since when, and how many checks in a row say so", () => {
    const state = { name: "main", status: "unhealthy", last_error_code: "timeout", updated_at: "2026-11-26T20:00:00Z" }
    const failing = { ...state, consecutive_failures: 4 }
    assert.deepStrictEqual(
      ofHealth(
        [
          { ...failing, status_since: "2026-11-25T20:00:00Z" },
          { ...failing, status_since: null }
        ],
        at
      ).map(({ sentence }) => sentence),
      [
        "is unhealthy (timeout) after 4 failures in a row; it became so 2026-11-25, last checked 2026-11-26",
        "is unhealthy (timeout) after 4 failures in a row, last checked 2026-11-26"
      ]
    )
  })

  it("is a guardrail that fails, and what became of the texts", () => {
    const sum = { guardrail_name: "pii", failed_count: 2 }
    assert.deepStrictEqual(
      ofGuardrails([
        { ...sum, failure_policy: "fail_open" },
        { ...sum, failure_policy: "fail_open" },
        { ...sum, failure_policy: "fail_closed", failed_count: 1 },
        { ...sum, failure_policy: "dry_run", failed_count: 0 }
      ]).map(({ sentence, weight }) => [weight, sentence]),
      [
        [3, "failed 4 times in a day, and the texts passed without it"],
        [3, "failed once in a day, and the requests were refused"]
      ]
    )
  })

  it("is an upstream with errors or timeouts in a part of its requests, and any fallback", () => {
    const observed = { name: "main", request_count: 100, error_count: 5, timeout_count: 12, fallback_count: 1 }
    assert.deepStrictEqual(
      ofTraffic([observed, { ...observed, request_count: 2 }]).map(({ id, weight }) => [id, weight]),
      [
        ["timeouts main", 3],
        ["errors main", 2],
        ["fallbacks main", 1]
      ]
    )
  })
})

describe("a step of a replay", () => {
  it("is handled only where each of its letters was published", () => {
    const step = {
      ...{ step: 1, size: 2, verdict: "handled" as const, handled: 2, failed_again: 0, open: 0, replayed: 2 },
      ...{ not_replayed: 0, began_at: null, published_at: null }
    }
    assert.deepStrictEqual(
      [{}, { handled: 1, replayed: 1, not_replayed: 1 }, { handled: 0, replayed: 0, not_replayed: 2 }].map((counts) =>
        wordsOfStep({ ...step, ...counts })
      ),
      [
        ["good", "all handled"],
        ["warning", "handled, but some were not published"],
        ["bad", "none published"]
      ]
    )
  })
})

describe("a running task", () => {
  it("is long by what tasks of its type take, and after five minutes where that is not known", () => {
    const minute = 60_000
    const long: ReadonlyArray<readonly [age: number, usual: number | undefined, isLong: boolean]> = [
      [4 * minute, undefined, false],
      [6 * minute, undefined, true],
      [6 * minute, 60 * minute, false],
      [minute, 1_000, true],
      [20_000, 1_000, false]
    ]
    for (const [age, usual, expected] of long) assert.strictEqual(isLong(age, usual), expected, `${age} ${usual}`)
  })
})

describe("the alarms of the board", () => {
  const seen = { broker: undefined, hub: undefined, queues: [], letters: [], workers: [], now: day }

  it("say so where they cannot be known, whatever the reason", () => {
    const failed = (status: number) => new ApiError(status, "some_code", "Something broke.")
    const words = (status: number) =>
      alarmsOf({ ...seen, errors: { queues: failed(status), letters: failed(status) } }).map(({ word }) => word)
    assert.deepStrictEqual([503, 500, 0].map(words), [
      ["Redis"],
      ["not known", "not known"],
      ["not known", "not known"]
    ])
    assert.deepStrictEqual(
      alarmsOf({ ...seen, errors: { queues: null, "dead letters": failed(500) } }).map(({ sentence }) => sentence),
      ["The dead letters cannot be read, so an alarm may be missing here: Something broke."]
    )
    assert.deepStrictEqual(alarmsOf({ ...seen, errors: { queues: null } }), [])
  })

  it("tell that statuses are stored a minute late, or not at all, as the home page does", () => {
    const sentences = ([null, 0, 59_999, 240_000] as const).map((lag_ms) => {
      const [alarm] = alarmsOf({ ...seen, hub: { lag_ms }, errors: {} })
      const [finding] = ofHub({ lag_ms })
      assert.strictEqual(alarm?.sentence, finding?.sentence)
      return alarm?.sentence
    })
    assert.deepStrictEqual(sentences, [
      "The hub of this server has not started: it stores no new statuses of tasks yet",
      undefined,
      undefined,
      "Statuses are stored 4 min late: histories, lists and graphs of tasks are behind by so much"
    ])
  })
})

describe("a group of usage", () => {
  it("is filtered by its label, an endpoint by its method and path, and what has no label by nothing", () => {
    const filters = [
      ["model", "gpt-5"],
      ["model", "other"],
      ["client", "other"],
      ["client", "unknown"],
      ["project", "individual"],
      ["endpoint", "GET /items/{id}"],
      ["endpoint", "none"],
      ["task_type", "scan"]
    ] as const
    assert.deepStrictEqual(
      filters.map(([group, name]) => filtersOf(groupOf(group), name)),
      [
        { model: "gpt-5" },
        undefined,
        { client: "other" },
        ...[undefined, undefined],
        { method: "GET", endpoint: "/items/{id}" },
        ...[undefined, undefined]
      ]
    )
  })

  it("without a label has the words of its kind in the chart", () => {
    const buckets = ["none", "blue"].map((name) => ({ ...bucket(0, 1), name, display_name: name }))
    const range = { text: "", isRelative: false, from: new Date(day), to: new Date(day + hourMs) }
    const labels = (split: "team" | "model") => {
      const parts = largestParts(buckets, measureOf("cost"), split)
      return drawParts(buckets, parts, { range, interval: "hour", measure: measureOf("cost") }).series.map(
        ({ label }) => label
      )
    }
    assert.deepStrictEqual(labels("team"), ["keys without a team", "blue"])
    assert.deepStrictEqual(labels("model"), ["none", "blue"])
  })
})

describe("the time of a request", () => {
  const measured = {
    status: "success" as const,
    latency_ms: 100,
    upstream_ms: 70,
    first_byte_ms: 60,
    gateway_ms: 30,
    pre_call_ms: 20
  }
  const of = (row: Partial<typeof measured> | { readonly upstream_ms: null; readonly status: "failure" }) =>
    timeOf({ ...measured, ...row }).map(({ from, kind, ms }) => [kind, from, ms])

  it("is that of the gateway, its guardrails, the upstream until its first byte, and the rest", () => {
    assert.deepStrictEqual(of({}), [
      ["gateway", 0, 10],
      ["guardrail", 10, 20],
      ["wait", 30, 30],
      ["rest", 60, 40]
    ])
  })

  it("has no guardrails where none ran", () => {
    assert.deepStrictEqual(of({ pre_call_ms: 0 })[1], ["wait", 30, 30])
  })

  it("ends with the guardrails where one refused it", () => {
    assert.deepStrictEqual(of({ upstream_ms: null, status: "failure" }), [
      ["refused", 0, 80],
      ["guardrail", 80, 20]
    ])
  })
})

describe("averages", () => {
  const latency = measureOf("latency")
  const of = (average_latency_ms: number, request_count: number) => ({
    ...summary(0),
    average_latency_ms,
    request_count
  })

  it("of several groups are those of their requests, and nothing where there was none", () => {
    assert.strictEqual(combined(latency, [of(100, 3), of(500, 1)]), 200)
    assert.isNull(combined(latency, []))
    assert.strictEqual(combined(measureOf("requests"), [of(100, 3), of(500, 1)]), 4)
  })

  it("have the highest one as their peak, and not their sum", () => {
    const drawn = {
      points: [
        { at: day, values: { a: 300, b: 300 } },
        { at: day + hourMs, values: { a: 400, b: null } }
      ],
      series: [
        { key: "a", label: "a" },
        { key: "b", label: "b" }
      ],
      format: String,
      bucketMs: hourMs
    }
    assert.match(peakSentence(drawn, false, true), /^Peak 400 at .*01:00\.$/)
    assert.match(peakSentence(drawn, true, true), /^Peak 600 at .*00:00\.$/)
  })
})

describe("numbers", () => {
  it("of buckets without requests are there, and zero", () => {
    const range = { from: new Date(day), to: new Date(day + 3 * hourMs) }
    const points = filled(range, "hour", [bucket(1, 2)], ([one]) => ({ cost: one?.summary.estimated_cost_usd ?? 0 }))
    assert.deepStrictEqual(
      points.map(({ values }) => values["cost"]),
      [0, 2, 0]
    )
  })

  it("of a range that begins within a bucket have a bucket for its beginning", () => {
    const range = { from: new Date(day + hourMs / 2), to: new Date(day + 2 * hourMs) }
    assert.deepStrictEqual([bucketCount(range, "hour"), bucketCount(range, "minute")], [2, 90])
  })

  it("are saved so that spreadsheets run nothing of them", () => {
    assert.strictEqual(csvLine(["=cmd()", 'a "b", c', -5, "plain"]), `'=cmd(),"a ""b"", c",-5,plain`)
  })
})

describe("A histogram of durations", () => {
  it("has bars that people can read, up to the longest, and at least those up to 50 ms", () => {
    assert.deepStrictEqual(barsOf([]), [])
    const bars = barsOf([
      { ms: 0, request_count: 3 },
      { ms: 0.98, request_count: 1 },
      { ms: 1.979, request_count: 2 },
      { ms: 120.4, request_count: 4 }
    ])
    assert.deepStrictEqual(
      bars.map(({ fromMs, requests, toMs, upTo }) => [fromMs, toMs, requests, upTo]),
      [
        [0, 1, 3, 3],
        [1, 2, 1, 4],
        [2, 5, 2, 6],
        [5, 10, 0, 6],
        [10, 20, 0, 6],
        [20, 50, 0, 6],
        [50, 100, 0, 6],
        [100, 200, 4, 10]
      ]
    )
    assert.strictEqual(barsOf([{ ms: 0, request_count: 1 }]).length, 6)
    assert.deepStrictEqual(barsOf([{ ms: 1e6, request_count: 1 }]).at(-1), {
      fromMs: 50_000,
      toMs: undefined,
      requests: 1,
      upTo: 1
    })
  })
})

describe("a budget that somebody writes", () => {
  const field = { field: "daily_budget_usd", minimum: 0, maximum: 9_000_000 }
  it.each([
    ["5", 5],
    [" 0.25 ", 0.25],
    ["0", 0]
  ])("%s is an amount", (text, amount) => assert.deepStrictEqual(readBudget(text, field), { amount }))

  it.each([
    ["-1", /from 0 to 9,000,000 US dollars/],
    ["0.0000001", /at least \$0\.000001/],
    ["1e9", /a number of US dollars, such as/],
    ["five", /a number/],
    ["", /a number/],
    ["9000001", /from 0 to 9,000,000/]
  ])("%s is none, and the sentence names the field and the way out", (text, problem) => {
    const read = readBudget(text, field)
    assert("problem" in read)
    assert.match(read.problem, /^daily_budget_usd /)
    assert.match(read.problem, problem)
  })
})

describe("a raise", () => {
  const now = Date.UTC(2026, 10, 27)
  const limit = { limit: 9, unit: "requests" as const }

  it("is more than the limit and ends in the future, or the field says so", () => {
    const problems = (amount: number, until: number) =>
      raiseProblems({ meter: "rpm_limit", amount, until: new Date(until) }, limit, now).map(({ field }) => field)
    assert.deepStrictEqual(problems(10, now + 1), [])
    assert.deepStrictEqual(problems(9, now + 1), ["rpm_limit"])
    assert.deepStrictEqual(problems(2, now - 1), ["rpm_limit", "until"])
  })

  it("and a forecast are said alike on every page", () => {
    const at = new Date(now + 6 * 86_400_000).toISOString()
    assert.strictEqual(raiseEndsText(at, now), "raised; the raise ends in 6 d")
    assert.strictEqual(usedUpText(at, now), "used up in 6 d at this rate")
  })
})

describe("stored prices", () => {
  it("are sorted by a field, and those without a price in it come last", () => {
    const price = (model: string, cached: number | null): ModelPrice => ({
      model,
      input_usd_per_million: 1,
      output_usd_per_million: 2,
      cached_input_usd_per_million: cached,
      cache_write_usd_per_million: null,
      updated_at: "2026-11-26T00:00:00Z"
    })
    const prices = [price("b", 3), price("c", null), price("a", 1)]
    const order = (by: string | undefined, isReversed: boolean) =>
      sortedPrices(prices, by, isReversed)
        .map(({ model }) => model)
        .join("")
    assert.deepStrictEqual([order(undefined, false), order(undefined, true)], ["bca", "bca"])
    // the table beside this one is sorted by it
    assert.strictEqual(orderOfPrices("cost"), undefined)
    assert.strictEqual(orderOfPrices("updated_at"), "updated_at")
    assert.strictEqual(order("model", false), "abc")
    assert.strictEqual(order("cached_input_usd_per_million", true), "bac")
    assert.strictEqual(order("cached_input_usd_per_million", false), "abc")
  })
})
