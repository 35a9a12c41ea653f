import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { type Admission, type LimitsUnavailable, UsageLimits } from "../../../src/gateway/limits/UsageLimits.ts"
import type { UsageEstimate } from "../../../src/policy/Estimate.ts"
import { neutral } from "../../../src/policy/KeyPolicy.ts"
import { limited } from "../../../src/policy/Limit.ts"
import { Database } from "../../../src/services/Database.ts"
import { Redis, RedisError } from "../../../src/services/Redis.ts"
import * as LimitScopes from "../../../src/state/limits/LimitScopes.ts"
import * as Meters from "../../../src/state/limits/Meters.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as RealTime from "../../RealTime.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import { suite } from "../Limits.ts"

const database = MigratedDatabase.embedded

suite("memory", RedisMemory.layer({ prefix: "svc-test-limits:" }), database)

describe.skipIf(TemporaryPrefix.server === null)("on a server", () => {
  suite("ioredis", RealTime.layer(TemporaryPrefix.layer), database)
})

describe("Limits", () => {
  it.effect("a key without limits is admitted without a word to Redis or the database", () =>
    Effect.gen(function* () {
      const limits = yield* UsageLimits
      const admission = yield* Effect.callback<Admission, LimitsUnavailable>((resume) =>
        limits.admitUnsafe("r-1", { scopes: [], all: [] }, wanted({}), resume)
      )
      assert.deepStrictEqual(admission._tag === "Admitted" && admission.readings, [])
    }).pipe(
      Effect.provide(
        UsageLimits.layer.pipe(Layer.provide([Layer.mock(Redis, { key: String }), Layer.mock(Database, {})]))
      )
    )
  )

  it.effect("nobody can say whether a request fits while Redis is gone", () =>
    Effect.gen(function* () {
      const limits = yield* UsageLimits
      const error = yield* Effect.flip(
        Effect.callback<Admission, LimitsUnavailable>((resume) =>
          limits.admitUnsafe("r-1", minuteMeters, wanted({}), resume)
        )
      )
      assert.strictEqual(error._tag, "LimitsUnavailable")
    }).pipe(
      Effect.provide(
        UsageLimits.layer.pipe(
          Layer.provide([Layer.mock(Redis, { key: String, run: () => Effect.fail(gone) }), Layer.mock(Database, {})])
        )
      )
    )
  )

  describe("an estimate never locks a key out, and what is known counts in full", () => {
    it.each([
      ["a request is one request", "rpm_limit", { tokens: 50 }, 1],
      ["tokens count as far as the limit holds", "tpm_limit", { inputTokens: 10, tokens: 5000 }, 100],
      ["tokens below the limit count as they are", "tpm_limit", { inputTokens: 10, tokens: 60 }, 60],
      ["input beyond the limit can never fit", "tpm_limit", { inputTokens: 101, tokens: 200 }, 101],
      [
        "a guessed cost counts as far as the budget holds",
        "daily_budget_usd",
        { nanos: 10_000_000_000, nanosEstimated: true },
        1_000_000_000
      ],
      ["a guessed cost below the budget counts as it is", "daily_budget_usd", { nanos: 10, nanosEstimated: true }, 10],
      ["a known cost beyond the budget can never fit", "daily_budget_usd", { nanos: 10_000_000_000 }, 10_000_000_000],
      ["what costs nothing counts nothing", "daily_budget_usd", { nanos: 0 }, 0]
    ] as const)("%s", (_, field, more, amount) => {
      const meter = limitsOfEach.all.find((one) => one.field === field)
      assert.strictEqual(meter && Meters.amountFor(meter, wanted(more)), amount)
    })
  })
})

const gone = new RedisError({ operation: "script", retryable: true, cause: new Error("gone") })

const wanted = (more: Partial<UsageEstimate>): UsageEstimate => ({
  inputTokens: 0,
  tokens: 0,
  nanos: 0,
  nanosEstimated: false,
  ...more
})

const limitsOfEach = Meters.of(
  [
    LimitScopes.ofKey("k-1", {
      ...neutral,
      rpm_limit: limited(5),
      tpm_limit: limited(100),
      daily_budget_usd: limited(1)
    })
  ],
  DateTime.makeUnsafe("2026-11-20T12:00:00Z")
)
const minuteMeters = Meters.of(
  [LimitScopes.ofKey("k-1", { ...neutral, rpm_limit: limited(5) })],
  DateTime.makeUnsafe("2026-11-20T12:00:00Z")
)
