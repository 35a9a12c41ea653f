import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import * as RateLimitHeaders from "../../../src/gateway/limits/RateLimitHeaders.ts"
import { neutral } from "../../../src/policy/KeyPolicy.ts"
import { limited } from "../../../src/policy/Limit.ts"
import * as LimitScopes from "../../../src/state/limits/LimitScopes.ts"
import * as Meters from "../../../src/state/limits/Meters.ts"

describe("RateLimitHeaders", () => {
  it("tell limit, rest and reset of the minute's limits, and nothing of days and budgets", () => {
    const used: Partial<Record<Meters.Unit, number>> = { requests: 3, tokens: 999 }
    const readings = meters.map((meter) => ({ meter, used: used[meter.unit] ?? 0 }))
    assert.deepStrictEqual(RateLimitHeaders.fields(readings, now), [
      ["x-ratelimit-limit-requests", "60"],
      ["x-ratelimit-remaining-requests", "57"],
      ["x-ratelimit-reset-requests", "25s"],
      ["x-ratelimit-limit-tokens", "1000"],
      ["x-ratelimit-remaining-tokens", "1"],
      ["x-ratelimit-reset-tokens", "25s"]
    ])
  })

  it("never tell less than nothing, nor a reset that is past", () => {
    const readings = meters.map((meter) => ({ meter, used: 5000 }))
    const late = RateLimitHeaders.fields(readings, now + 60_000)
    assert.deepInclude(late, ["x-ratelimit-remaining-tokens", "0"])
    assert.deepInclude(late, ["x-ratelimit-reset-tokens", "1s"])
  })
})

const now = Date.parse("2026-11-20T12:00:35.5Z")

const { all: meters } = Meters.of(
  [
    LimitScopes.ofKey("k-1", {
      ...neutral,
      rpm_limit: limited(60),
      tpm_limit: limited(1000),
      max_requests_per_day: limited(9),
      daily_budget_usd: limited(1)
    })
  ],
  DateTime.makeUnsafe(now)
)
