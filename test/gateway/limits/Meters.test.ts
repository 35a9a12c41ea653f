import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import fc from "fast-check"
import * as MeterRefusal from "../../../src/gateway/limits/MeterRefusal.ts"
import { type KeyPolicy, neutral } from "../../../src/policy/KeyPolicy.ts"
import { limited } from "../../../src/policy/Limit.ts"
import * as LimitScopes from "../../../src/state/limits/LimitScopes.ts"
import * as Meters from "../../../src/state/limits/Meters.ts"

describe("Meters", () => {
  it("a policy without limits has none", () => {
    assert.deepStrictEqual(metersOf(neutral, at("2026-11-20T19:50:35.123Z")), [])
  })

  it("have the reference's names, in whole units, until their window ends", () => {
    const meters = metersOf({ ...neutral, ...everyLimit }, at("2026-11-20T19:50:35.123Z"))
    assert.deepStrictEqual(
      meters.map(({ endsAt, field, key, limit, unit, window }) => [field, unit, window, limit, key, iso(endsAt)]),
      [
        ["rpm_limit", "requests", "minute", 60, `rl:req:${keyId}:202611201950`, "2026-11-20T19:51:00.000Z"],
        ["tpm_limit", "tokens", "minute", 1000, `rl:tpm:${keyId}:202611201950`, "2026-11-20T19:51:00.000Z"],
        ["max_requests_per_day", "requests", "day", 0, `rl:rpd:${keyId}:20261120`, "2026-11-21T00:00:00.000Z"],
        ["max_tokens_per_day", "tokens", "day", 5, `rl:tpd:${keyId}:20261120`, "2026-11-21T00:00:00.000Z"],
        [
          "daily_budget_usd",
          "nanos",
          "day",
          1_500_000_000,
          `budget:daily:${keyId}:20261120`,
          "2026-11-21T00:00:00.000Z"
        ],
        [
          "monthly_budget_usd",
          "nanos",
          "month",
          10_000_000,
          `budget:monthly:${keyId}:202611`,
          "2026-12-01T00:00:00.000Z"
        ]
      ]
    )
  })

  it("counters are kept as long as the reference keeps them", () => {
    assert.deepStrictEqual(Meters.retentionSeconds, { minute: 70, day: 172_800, month: 5_356_800 })
  })

  it.each<[window: Meters.Window, now: string, id: string, startsAt: string, endsAt: string]>([
    ["minute", "2026-11-20T19:59:59.999Z", "202611201959", "2026-11-20T19:59:00.000Z", "2026-11-20T20:00:00.000Z"],
    ["minute", "2026-11-20T20:00:00.000Z", "202611202000", "2026-11-20T20:00:00.000Z", "2026-11-20T20:01:00.000Z"],
    ["minute", "2026-12-31T23:59:30.000Z", "202612312359", "2026-12-31T23:59:00.000Z", "2027-01-01T00:00:00.000Z"],
    ["day", "2026-12-31T23:59:59.999Z", "20261231", "2026-12-31T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
    ["day", "2028-02-28T12:00:00.000Z", "20280228", "2028-02-28T00:00:00.000Z", "2028-02-29T00:00:00.000Z"],
    ["day", "2028-02-29T00:00:00.000Z", "20280229", "2028-02-29T00:00:00.000Z", "2028-03-01T00:00:00.000Z"],
    ["day", "2027-02-28T12:00:00.000Z", "20270228", "2027-02-28T00:00:00.000Z", "2027-03-01T00:00:00.000Z"],
    ["day", "2026-03-29T01:30:00.000Z", "20260329", "2026-03-29T00:00:00.000Z", "2026-03-30T00:00:00.000Z"],
    ["month", "2028-02-29T23:59:59.999Z", "202802", "2028-02-01T00:00:00.000Z", "2028-03-01T00:00:00.000Z"],
    ["month", "2026-01-31T12:00:00.000Z", "202601", "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"],
    ["month", "2026-12-31T23:59:59.999Z", "202612", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"]
  ])("the %s of %s is %s, from %s to %s", (window, now, id, startsAt, endsAt) => {
    const found = Meters.windowAt(window, at(now))
    assert.deepStrictEqual([found.id, iso(found.startsAt), iso(found.endsAt)], [id, startsAt, endsAt])
  })

  it("windows follow each other without gap or overlap, each under a name of its own", () => {
    fc.assert(
      fc.property(fc.constantFrom<Meters.Window>("minute", "day", "month"), moment, (window, now) => {
        const here = Meters.windowAt(window, DateTime.makeUnsafe(now))
        const next = Meters.windowAt(window, DateTime.makeUnsafe(here.endsAt))
        assert.isTrue(here.startsAt <= now && now < here.endsAt)
        assert.deepStrictEqual(Meters.windowAt(window, DateTime.makeUnsafe(here.endsAt - 1)), here)
        assert.strictEqual(next.startsAt, here.endsAt)
        assert.isTrue(here.id < next.id)
      }),
      { numRuns: 300 }
    )
  })

  it("Retry-After is whole seconds, at least one, and no second before the window ends", () => {
    fc.assert(
      fc.property(moment, (now) => {
        for (const meter of metersOf({ ...neutral, ...everyLimit }, DateTime.makeUnsafe(now))) {
          const seconds = MeterRefusal.refusal(meter, meter.limit, 0, now).retryAfterSeconds ?? 0
          assert.isTrue(Number.isInteger(seconds) && seconds >= 1)
          assert.isAtLeast(now + seconds * 1000, meter.endsAt)
          assert.isBelow(now + (seconds - 1) * 1000, meter.endsAt)
        }
      }),
      { numRuns: 100 }
    )
  })

  it.each([
    ["rpm_limit", "rate_limit_exceeded", "60 requests a minute"],
    ["tpm_limit", "token_rate_limit_exceeded", "1000 tokens a minute"],
    ["max_requests_per_day", "rate_limit_exceeded", "0 requests a day"],
    ["max_tokens_per_day", "token_rate_limit_exceeded", "5 tokens a day"],
    ["daily_budget_usd", "budget_exceeded", "$1.5 a day"],
    ["monthly_budget_usd", "budget_exceeded", "$0.01 a month"]
  ] as const)("a refusal by %s is %s and names the limit: %s", (field, code, limit) => {
    const meter = meterOf(field)
    const refusal = MeterRefusal.refusal(meter, meter.limit, 0, meter.endsAt)
    assert.strictEqual(refusal.code, code)
    assert.include(refusal.message, `${field} of this key (${limit})`)
  })

  it("a refusal says what is used and when the window resets, or that the request can never fit", () => {
    const meter = meterOf("tpm_limit")
    const said = (used: number, wanted: number) => {
      const { message, retryAfterSeconds } = MeterRefusal.refusal(meter, used, wanted, meter.endsAt - 2000)
      return [message, retryAfterSeconds]
    }
    assert.deepStrictEqual(said(990, 11), [
      "The request would exceed tpm_limit of this key (1000 tokens a minute): 990 tokens are used or reserved; the window resets at 2026-11-20T19:51:00.000Z.",
      2
    ])
    assert.deepStrictEqual(said(0, 1001), [
      "The request needs an estimated 1001 tokens, which can never fit tpm_limit of this key (1000 tokens a minute).",
      undefined
    ])
  })
})

const keyId = "6d0c4a5e-5f0b-4a37-9d0f-0c1f5a1f2b3c"

const everyLimit: Partial<KeyPolicy> = {
  rpm_limit: limited(60),
  tpm_limit: limited(1000),
  max_requests_per_day: limited(0),
  max_tokens_per_day: limited(5),
  daily_budget_usd: limited(1.5),
  monthly_budget_usd: limited(0.01)
}

const metersOf = (policy: KeyPolicy, now: DateTime.Utc) => Meters.of([LimitScopes.ofKey(keyId, policy)], now).all

const at = (iso: string) => DateTime.makeUnsafe(iso)
const iso = (epochMillis: number) => new Date(epochMillis).toISOString()

const meterOf = (field: Meters.Meter["field"]) => {
  const [meter] = metersOf({ ...neutral, [field]: everyLimit[field] }, at("2026-11-20T19:50:35.123Z"))
  assert.exists(meter)
  return meter
}

/** From 2000 to 2100. */
const moment = fc.integer({ min: 946_684_800_000, max: 4_102_444_800_000 })
