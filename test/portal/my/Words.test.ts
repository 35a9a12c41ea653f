import { assert, describe, it } from "@effect/vitest"
import {
  headline,
  inOrder,
  limitLabel,
  type OwnLimit,
  sharedWith,
  withinText
} from "../../../src/portal/pages/my/common/limits.ts"
import { modelRows } from "../../../src/portal/pages/my/common/modelRows.ts"
import { foundText, testOf, textAfter } from "../../../src/portal/pages/my/guardrails/guardrailTest.ts"
import { byDayAndModel } from "../../../src/portal/pages/my/home/ownSeries.ts"
import { rulesOf } from "../../../src/portal/pages/my/key/rules.ts"

const now = Date.parse("2026-11-26T19:00:00Z")
const hour = 3_600_000

const limit = (over: Partial<OwnLimit>): OwnLimit => ({
  meter: "daily_budget_usd",
  unit: "usd",
  window: "day",
  scope: "key",
  scope_id: null,
  scope_name: "ada",
  project_name: null,
  team_id: null,
  within: null,
  state: "counted",
  limit: 5,
  used: 2.69,
  reserved: 0,
  remaining: 2.31,
  share: 0.538,
  resets_at: new Date(now + 5 * hour).toISOString(),
  raised_until: null,
  forecast: null,
  ...over
})

const requests = limit({
  meter: "max_requests_per_day",
  unit: "requests",
  limit: 200,
  used: 12,
  remaining: 188,
  share: 0.06
})

describe("the sentence that says what is left", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<OwnLimit>, string]> = [
    ["money", [requests, limit({})], "You may spend $2.31 more today (resets in 5 h)."],
    ["requests", [requests], "You may send 188 more requests today (resets in 5 h)."],
    ["nothing left", [limit({ remaining: 0 })], "Nothing is left today of $5.00 (resets in 5 h)."],
    [
      "requests that are used up, whatever money is left",
      [limit({}), limit({ ...requests, remaining: 0 })],
      "Nothing is left today of 200 requests (resets in 5 h)."
    ],
    ["no limit", [], "Nothing limits what you may use."],
    ["an unknown amount", [limit({ remaining: null, used: null })], "How much is left is not known at the moment."],
    ["one model alone", [limit({ within: "model:m" })], "How much is left is not known at the moment."]
  ]
  it.each(cases)("of %s", (_, limits, sentence) => {
    assert.strictEqual(headline(limits, now), sentence)
  })

  it("has the limits in an order of their own", () => {
    const ofModel = limit({ within: "model:m" })
    assert.deepStrictEqual(inOrder([ofModel, requests, limit({})]), [limit({}), requests, ofModel])
  })

  it("names limits, and those with whom they are shared, without a word of operators", () => {
    assert.strictEqual(limitLabel(limit({ window: "month" })), "Money this month")
    assert.strictEqual(withinText("model:gpt-5:mini"), "for the model gpt-5:mini")
    assert.strictEqual(withinText(null), "")
    assert.strictEqual(sharedWith("team:blue"), "your team")
    assert.strictEqual(sharedWith("global"), "everyone")
  })
})

type Buckets = Parameters<typeof modelRows>[2]
type Summary = Buckets[number]["summary"]

const summary = (part: Partial<Summary>): Summary => ({
  request_count: 0,
  success_count: 0,
  failure_count: 0,
  reported_count: 0,
  estimated_count: 0,
  status_only_count: 0,
  input_tokens: 0,
  output_tokens: 0,
  total_tokens: 0,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  cached_share: null,
  estimated_cost_usd: 0,
  total_latency_ms: 0,
  average_latency_ms: null,
  fallback_count: 0,
  fallback_rate: 0,
  policy_denial_count: 0,
  rate_limit_denial_count: 0,
  budget_denial_count: 0,
  guardrail_block_count: 0,
  expensive_request_count: 0,
  unpriced_request_count: 0,
  ...part
})

const bucket = (day: number, model: string, spent: number): Buckets[number] => ({
  bucket: `2026-11-${day}T00:00:00.000Z`,
  name: model,
  display_name: model,
  summary: summary({ estimated_cost_usd: spent, request_count: 1, total_tokens: 10 })
})

const buckets = [bucket(24, "a.b", 1), bucket(26, "a.b", 2), bucket(26, "c", 5)]

describe("own usage", () => {
  it("has a point for every day, and the dearest model first", () => {
    const { points, series } = byDayAndModel(
      buckets,
      Date.parse("2026-11-24T00:00:00Z"),
      Date.parse("2026-11-26T00:00:00Z"),
      ({ estimated_cost_usd }) => estimated_cost_usd
    )
    assert.deepStrictEqual(
      series.map(({ label }) => label),
      ["c", "a.b"]
    )
    assert.deepStrictEqual(
      points.map(({ values }) => series.map(({ key }) => values[key])),
      [
        [0, 1],
        [0, 0],
        [5, 2]
      ]
    )
    // the library of charts takes a dot for a path
    for (const { key } of series) assert.notInclude(key, ".")
  })

  it("is beside the price of each model, also of those that were never used or have no price", () => {
    const price = { model: "d", input_usd_per_million: 1, output_usd_per_million: 2, note: "Long prompts cost more." }
    const used = [
      { model: "c", input_usd_per_million: 3, output_usd_per_million: 4, note: null },
      { model: "a.b", input_usd_per_million: null, output_usd_per_million: null, note: null }
    ]
    const tried = bucket(26, "may not be called", 0)
    assert.deepStrictEqual(
      modelRows(["d"], { priced: [price], used }, [...buckets, tried]).map(
        ({ input, model, note, requests: count, spent }) => [model, input, count, spent, note]
      ),
      [
        ["c", 3, 1, 5, null],
        ["a.b", undefined, 2, 3, null],
        ["d", 1, 0, 0, "Long prompts cost more."]
      ]
    )
  })
})

describe("what a key may do", () => {
  const open: Parameters<typeof rulesOf>[0] = {
    deny: false,
    allowed_routes: null,
    allowed_models: null,
    allowed_providers: null,
    allowed_services: null,
    allowed_hours_utc: null,
    allow_streaming: true,
    allow_tools: true,
    rpm_limit: null,
    tpm_limit: null,
    max_requests_per_day: null,
    max_tokens_per_day: null,
    daily_budget_usd: null,
    monthly_budget_usd: null,
    max_cost_per_request: null,
    unpriced_models: "flat",
    max_input_tokens_per_request: null,
    max_output_tokens_per_request: null,
    unused_key_auto_disable_after_days: null,
    max_request_body_bytes: null,
    max_response_body_bytes: null,
    max_stream_duration_seconds: null,
    max_sse_event_bytes: null,
    max_tool_call_count: null,
    max_tool_schema_bytes: null,
    max_concurrent_requests: null
  }

  it("is said where something restricts it", () => {
    assert.deepStrictEqual(rulesOf(open), [["Models", "all"]])
    assert.deepStrictEqual(rulesOf({ ...open, deny: true }), [["Requests", "none at the moment"]])
    const narrow = {
      ...open,
      allowed_models: ["gpt-5", "claude-*"],
      allowed_hours_utc: [8, 9],
      allow_tools: false,
      max_output_tokens_per_request: 4_096
    }
    assert.deepStrictEqual(rulesOf(narrow), [
      ["Models", "gpt-5, claude-*"],
      ["When", "at 08:00, 09:00 UTC, an hour each"],
      ["Tools", "not allowed"],
      ["Output of one request", "at most 4,096 tokens"]
    ])
  })
})

describe("the bench of guardrails", () => {
  it("says what was found", () => {
    assert.strictEqual(foundText({ email_count: 2, phone_count: 0, ssn_count: 1, note: "x" }), "2 email, 1 ssn")
    assert.strictEqual(foundText({}), "")
  })

  it("puts a text where guardrails meet it, and finds it there again", () => {
    const text = "a text with “quotes” and model names"
    for (const direction of ["sent", "answered", "streamed"] as const) {
      const { chunks, input } = testOf(direction, text)
      const result = chunks === undefined ? { ...(input !== undefined && { input }) } : { sent: [...chunks, ""] }
      const after = textAfter({ applied_guardrails: [], results: [], ...result })
      assert.strictEqual(after, text)
    }
  })
})
