import { randomUUID } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Array, DateTime, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import type { SettledUsage } from "../../src/gateway/limits/SettlementCounters.ts"
import {
  type Admission,
  type LimitsUnavailable,
  type Reservation,
  UsageLimits
} from "../../src/gateway/limits/UsageLimits.ts"
import type { UsageEstimate } from "../../src/policy/Estimate.ts"
import { type KeyPolicy, neutral } from "../../src/policy/KeyPolicy.ts"
import { limited } from "../../src/policy/Limit.ts"
import { Database } from "../../src/services/Database.ts"
import { Redis, type RedisError } from "../../src/services/Redis.ts"
import * as LimitScopes from "../../src/state/limits/LimitScopes.ts"
import * as Meters from "../../src/state/limits/Meters.ts"
import { usageQueue } from "../../src/state/UsageQueue.ts"

/** What limits promise, on any Redis: time is the test's, the server's own only lets keys expire. */
export const suite = <E>(name: string, redis: Layer.Layer<Redis, E>, database: Layer.Layer<Database, unknown>) =>
  layer(UsageLimits.layer.pipe(Layer.provideMerge([redis, database])))(`Limits: ${name}`, (it) => {
    it.effect("RPM of N lets N through in a minute, and N again in the next", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ rpm_limit: limited(3) })
        for (const minute of ["12:00:00", "12:01:00"]) {
          yield* setTime(minute)
          assert.deepStrictEqual(yield* key.used("rpm_limit", 3), [1, 2, 3])
          yield* TestClock.adjust("59 seconds")
          const refused = yield* key.refused()
          assert.deepInclude(refused, { used: 3, wanted: 1 })
          assert.strictEqual(refused.meter.endsAt - (yield* nowMillis), 1000)
        }
      })
    )

    it.effect("TPM holds what a request may take until it is settled with what it took", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ tpm_limit: limited(100) })
        const first = yield* key.admitted({ ...nothing, inputTokens: 10, tokens: 60 })
        assert.deepInclude(yield* key.refused({ ...nothing, inputTokens: 10, tokens: 41 }), { used: 60, wanted: 41 })
        yield* key.settle(first, { tokens: 15, nanos: 0 })
        assert.strictEqual(yield* key.counter("tpm_limit"), 15)
        yield* key.admitted({ ...nothing, inputTokens: 10, tokens: 85 })
      })
    )

    it.effect("a day's tokens and requests are counted by the day", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ max_requests_per_day: limited(2), max_tokens_per_day: limited(100) })
        const first = yield* key.admitted({ ...nothing, inputTokens: 5, tokens: 40 })
        yield* key.settle(first, { tokens: 90, nanos: 0 })
        assert.deepInclude(yield* key.refused({ ...nothing, inputTokens: 11, tokens: 11 }), { used: 90, wanted: 11 })
        yield* key.admitted({ ...nothing, inputTokens: 5, tokens: 5 })
        assert.deepInclude(yield* key.refused(nothing), { used: 2, wanted: 1 })
        yield* TestClock.adjust("1 day")
        yield* key.admitted({ ...nothing, inputTokens: 50, tokens: 100 })
      })
    )

    it.effect("a budget is what is left of the day and of the month: the first that is used up refuses", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ daily_budget_usd: limited(1), monthly_budget_usd: limited(1.5) })
        const dear = { ...nothing, nanos: 900_000_000 }
        yield* key.settle(yield* key.admitted(dear), { tokens: 0, nanos: 950_000_000 })
        assert.deepInclude(yield* key.refused(dear), { field: "daily_budget_usd", used: 950_000_000 })
        yield* TestClock.adjust("1 day")
        assert.deepInclude(yield* key.refused(dear), { field: "monthly_budget_usd", used: 950_000_000 })
        yield* key.admitted({ ...nothing, nanos: 550_000_000 })
        yield* TestClock.adjust("31 days")
        yield* key.admitted(dear)
      })
    )

    it.effect("what a request took beyond its estimate counts as well", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ daily_budget_usd: limited(1) })
        yield* key.settle(yield* key.admitted({ ...nothing, nanos: 1 }), { tokens: 0, nanos: 5_000_000_000 })
        assert.deepInclude(yield* key.refused({ ...nothing, nanos: 1 }), { used: 5_000_000_000, wanted: 1 })
      })
    )

    it.effect("what takes nothing of a meter is not held up by it, however full it is", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ daily_budget_usd: limited(0), tpm_limit: limited(10) })
        yield* key.admitted(nothing)
        yield* key.settle(yield* key.admitted({ ...nothing, inputTokens: 1, tokens: 1 }), { tokens: 500, nanos: 0 })
        yield* key.admitted(nothing)
        assert.deepInclude(yield* key.refused({ ...nothing, inputTokens: 1, tokens: 1 }), { used: 500, wanted: 1 })
      })
    )

    it.effect("all meters of a request count it, or none does", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ rpm_limit: limited(5), tpm_limit: limited(100), daily_budget_usd: limited(1) })
        const tooDear = { inputTokens: 5, tokens: 50, nanos: 1_000_000_001, nanosEstimated: false }
        assert.deepInclude(yield* key.refused(tooDear), { field: "daily_budget_usd", used: 0, wanted: 1_000_000_001 })
        assert.deepStrictEqual(yield* key.counters, [0, 0, 0])
        yield* key.admitted({ ...tooDear, nanos: 400_000_000 })
        assert.deepStrictEqual(yield* key.counters, [1, 50, 400_000_000])
        assert.deepInclude(yield* key.refused({ ...tooDear, tokens: 60, nanos: 1 }), { field: "tpm_limit", used: 50 })
        assert.deepStrictEqual(yield* key.counters, [1, 50, 400_000_000])
      })
    )

    it.effect.each([
      { policy: { rpm_limit: limited(10) } },
      { policy: { tpm_limit: limited(500) } },
      { policy: { max_tokens_per_day: limited(500), rpm_limit: limited(1000) } },
      { policy: { daily_budget_usd: limited(0.1), monthly_budget_usd: limited(50) } },
      { policy: { daily_budget_usd: limited(50), monthly_budget_usd: limited(0.1) } }
    ])("200 requests at once against room for 10: exactly 10 pass (%j)", ({ policy }) =>
      Effect.gen(function* () {
        const key = yield* keyWith(policy)
        const wanted = { inputTokens: 20, tokens: 50, nanos: 10_000_000, nanosEstimated: true }
        const admissions = yield* Effect.all(
          Array.makeBy(200, () => key.admit(wanted)),
          { concurrency: "unbounded" }
        )
        assert.lengthOf(
          admissions.filter(({ _tag }) => _tag === "Admitted"),
          10
        )
        const whole = {
          rpm_limit: 10,
          tpm_limit: 500,
          max_tokens_per_day: 500,
          daily_budget_usd: 100_000_000,
          monthly_budget_usd: 100_000_000
        }
        const [full] = admissions.flatMap((one) => (one._tag === "Refused" ? [one.reading] : []))
        assert.strictEqual(full?.used, full && whole[full.meter.field as keyof typeof whole])
      })
    )

    it.effect.each([
      { policy: { rpm_limit: limited(0) } },
      { policy: { tpm_limit: limited(0) } },
      { policy: { max_requests_per_day: limited(0) } },
      { policy: { max_tokens_per_day: limited(0) } },
      { policy: { daily_budget_usd: limited(0) } },
      { policy: { monthly_budget_usd: limited(0) } }
    ])("a limit of zero lets nothing through (%j)", ({ policy }) =>
      Effect.gen(function* () {
        const key = yield* keyWith(policy)
        assert.strictEqual(
          (yield* key.refused({ ...nothing, inputTokens: 1, tokens: 9, nanos: 10, nanosEstimated: true })).used,
          0
        )
      })
    )

    it.effect("settling twice is settling once", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ tpm_limit: limited(100), monthly_budget_usd: limited(1) })
        const reservation = yield* key.admitted({ inputTokens: 5, tokens: 50, nanos: 100, nanosEstimated: false })
        yield* key.settle(reservation, { tokens: 20, nanos: 70 })
        const once = yield* key.counters
        assert.deepStrictEqual(once, [20, 70])
        yield* key.settle(reservation, { tokens: 20, nanos: 70 })
        assert.deepStrictEqual(yield* key.counters, once)
        yield* TestClock.adjust("20 minutes")
        yield* key.settle(reservation, { tokens: 20, nanos: 70 })
        assert.strictEqual(yield* key.counter("monthly_budget_usd"), 70)
      })
    )

    it.effect("every settlement queues its record, and says how many wait", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ rpm_limit: limited(9) })
        const unlimited = yield* keyWith({})
        const before = yield* queued
        assert.strictEqual(yield* key.settle(yield* key.admitted(), { tokens: 0, nanos: 0 }, "one"), before.length + 1)
        assert.strictEqual(yield* key.settle(undefined, { tokens: 0, nanos: 0 }, "two"), before.length + 2)
        yield* unlimited.settle(yield* unlimited.admitted(), { tokens: 0, nanos: 0 }, "three ☃")
        assert.deepStrictEqual((yield* queued).slice(before.length), ["one", "two", "three ☃"])
      })
    )

    it.effect("what a dead gateway held is given back when its lease has ended, and no sooner", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ max_requests_per_day: limited(9), monthly_budget_usd: limited(1) })
        yield* key.admitted({ ...nothing, nanos: 800_000_000 })
        yield* TestClock.adjust("14 minutes")
        assert.strictEqual((yield* key.refused({ ...nothing, nanos: 300_000_000 })).used, 800_000_000)
        yield* TestClock.adjust("1 minute")
        yield* key.admitted({ ...nothing, nanos: 300_000_000 })
        // the request was made, whatever became of it
        assert.deepStrictEqual(yield* key.counters, [2, 300_000_000])
      })
    )

    it.effect("it is given back however long nobody asks", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ monthly_budget_usd: limited(1) })
        yield* key.admitted({ ...nothing, nanos: 800_000_000 })
        yield* TestClock.adjust("5 days")
        yield* key.admitted({ ...nothing, nanos: 300_000_000 })
        assert.strictEqual(yield* key.counter("monthly_budget_usd"), 300_000_000)
      })
    )

    it.effect("a request that was given back and settles after all counts in full, once", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ monthly_budget_usd: limited(1) })
        const slow = yield* key.admitted({ ...nothing, nanos: 800_000_000 })
        yield* TestClock.adjust("15 minutes")
        yield* key.admitted({ ...nothing, nanos: 1 })
        for (const _ of ["settled", "settled again"]) yield* key.settle(slow, { tokens: 0, nanos: 500_000_000 })
        assert.strictEqual(yield* key.counter("monthly_budget_usd"), 500_000_001)
      })
    )

    it.effect("a request that outlives its lease unnoticed settles as any other", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({ monthly_budget_usd: limited(1) })
        const slow = yield* key.admitted({ ...nothing, nanos: 800_000_000 })
        yield* TestClock.adjust("1 hour")
        yield* key.settle(slow, { tokens: 0, nanos: 500_000_000 })
        assert.strictEqual(yield* key.counter("monthly_budget_usd"), 500_000_000)
      })
    )

    it.effect("the record of a reservation that Redis has lost is queued all the same", () =>
      Effect.gen(function* () {
        const { command, key: named } = yield* Redis
        const key = yield* keyWith({ rpm_limit: limited(5) })
        const reservation = yield* key.admitted()
        yield* command("DEL", named(`limits:open:${key.id}`))
        const before = (yield* queued).length
        assert.strictEqual(yield* key.settle(reservation, { tokens: 1, nanos: 1 }), before + 1)
      })
    )

    it.effect("a settlement behind the end of its window starts no counter anew", () =>
      Effect.gen(function* () {
        const { command, key: named } = yield* Redis
        const key = yield* keyWith({ tpm_limit: limited(100) })
        const reservation = yield* key.admitted({ ...nothing, inputTokens: 1, tokens: 50 })
        const [meter] = reservation.meters.all
        yield* command("DEL", named(meter?.key ?? ""))
        yield* key.settle(reservation, { tokens: 70, nanos: 0 })
        assert.strictEqual(yield* key.counter("tpm_limit"), 0)
      })
    )

    it.effect("when Redis knows nothing of a limit, it starts from what the usage records say of its window", () =>
      Effect.gen(function* () {
        const key = yield* keyWith({
          max_requests_per_day: limited(9),
          daily_budget_usd: limited(9),
          monthly_budget_usd: limited(9),
          max_tokens_per_day: limited(9000)
        })
        yield* setTime("12:00:00")
        yield* key.recorded("2026-11-20T08:00:00Z", { tokens: 1000, nanos: 2_000_000_000 })
        yield* key.recorded("2026-11-20T00:00:00Z", { tokens: 100, nanos: 100_000_000 })
        yield* key.recorded("2026-11-20T09:00:00Z", { error: "upstream_connection" })
        // a guardrail comes behind the limits, a policy before them
        yield* key.recorded("2026-11-20T09:01:00Z", { error: "guardrail_blocked" })
        yield* key.recorded("2026-11-20T09:02:00Z", { error: "policy_denied" })
        yield* key.recorded("2026-11-19T23:59:59.999Z", { tokens: 50, nanos: 50_000_000 })
        yield* key.recorded("2026-10-31T23:59:59.999Z", { tokens: 7, nanos: 7_000_000 })
        yield* key.admitted({ inputTokens: 1, tokens: 1, nanos: 1, nanosEstimated: false })
        assert.deepStrictEqual(yield* key.counters, [5, 1101, 2_100_000_001, 2_150_000_001])
      })
    )

    it.effect("a limit that is set later counts what was spent before it was", () =>
      Effect.gen(function* () {
        yield* setTime("12:00:00")
        const key = yield* keyWith({ daily_budget_usd: limited(9) })
        yield* key.recorded("2026-11-18T08:00:00Z", { tokens: 1, nanos: 5_000_000_000 })
        yield* key.admitted({ ...nothing, nanos: 1 })
        const stricter = yield* keyWith({ daily_budget_usd: limited(9), monthly_budget_usd: limited(4) }, key.id)
        assert.deepInclude(yield* stricter.refused({ ...nothing, nanos: 1 }), {
          field: "monthly_budget_usd",
          used: 5_000_000_000
        })
      })
    )
  })

const nothing: UsageEstimate = { inputTokens: 0, tokens: 0, nanos: 0, nanosEstimated: false }

const nowMillis = Effect.map(DateTime.now, DateTime.toEpochMillis)

const setTime = (time: string) => TestClock.setTime(Date.parse(`2026-11-20T${time}Z`))

const queued = Effect.gen(function* () {
  const { command, key } = yield* Redis
  const records = yield* command("LRANGE", key(usageQueue), "0", "-1")
  return Array.isArray(records) ? records : []
})

/** A key of its own under `policy`, at noon of a day in November. */
const keyWith = Effect.fnUntraced(function* (policy: Partial<KeyPolicy>, id: string = randomUUID(), since = 0) {
  const limits = yield* UsageLimits
  const { command, key: named } = yield* Redis
  const { sql } = yield* Database
  yield* setTime("12:00:00")
  const meters = Effect.map(DateTime.now, (now) =>
    Meters.of([LimitScopes.ofKey(id, { ...neutral, ...policy }, () => ({ counted: "all", since }))], now)
  )
  const admit = (wanted: UsageEstimate = nothing) =>
    Effect.flatMap(meters, (meters) =>
      Effect.callback<Admission, LimitsUnavailable>((resume) =>
        limits.admitUnsafe(randomUUID(), meters, wanted, resume)
      )
    )
  const counterOf = (meter: Meters.Meter) => Effect.map(command("GET", named(meter.key)), Number)
  return {
    id,
    admit,
    admitted: (wanted?: UsageEstimate): Effect.Effect<Reservation, unknown> =>
      Effect.map(admit(wanted), (admission: Admission) => {
        assert(admission._tag === "Admitted", "the request should be admitted")
        return admission.reservation
      }),
    refused: (wanted?: UsageEstimate) =>
      Effect.map(admit(wanted), (admission: Admission) => {
        assert(admission._tag === "Refused", "the request should be refused")
        const { reading, wanted } = admission
        return { meter: reading.meter, field: reading.meter.field, used: reading.used, wanted }
      }),
    /** What the meter reads after each of so many admissions. */
    used: (field: Meters.Meter["field"], times: number) =>
      Effect.map(Effect.all(Array.makeBy(times, () => admit())), (admissions) =>
        admissions.map(
          (one) => one._tag === "Admitted" && one.readings.find(({ meter }) => meter.field === field)?.used
        )
      ),
    settle: (reservation: Reservation | undefined, used: SettledUsage, record = "{}") =>
      Effect.callback<number, RedisError>((resume) => limits.settleUnsafe(reservation, used, record, resume)),
    counters: Effect.flatMap(meters, ({ all }) => Effect.forEach(all, counterOf)),
    counter: (field: Meters.Meter["field"]) =>
      Effect.flatMap(meters, ({ all }) => Effect.all(all.filter((meter) => meter.field === field).map(counterOf))).pipe(
        Effect.map(([count]) => count)
      ),
    recorded: (
      at: string,
      record: { readonly tokens?: number; readonly nanos?: number; readonly error?: string }
    ): Effect.Effect<unknown, SqlError.SqlError> =>
      sql`INSERT INTO usage_events (id, created_at, request_id, key_id, route, provider, status, status_code, error_code,
        latency_ms, usage_source, total_tokens, cost_nanos, cost_source, streamed) VALUES (${randomUUID()}, ${at}, 'r',
        ${id}, '/v1/models', 'upstream', 'success', 200, ${record.error ?? null}, 1, 'reported', ${record.tokens ?? null},
        ${record.nanos ?? null}, 'none', false)`
  }
})
