import { randomUUID } from "node:crypto"
import { assert, it } from "@effect/vitest"
import { Context, DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import {
  type Admission,
  type LimitsUnavailable,
  type Reservation,
  UsageLimits
} from "../../src/gateway/limits/UsageLimits.ts"
import { neutral } from "../../src/policy/KeyPolicy.ts"
import { limited, unlimited } from "../../src/policy/Limit.ts"
import { Redis, type RedisError } from "../../src/services/Redis.ts"
import * as LimitScopes from "../../src/state/limits/LimitScopes.ts"
import * as Meters from "../../src/state/limits/Meters.ts"
import * as UsageRow from "../../src/state/UsageRow.ts"
import * as MigratedDatabase from "../MigratedDatabase.ts"
import * as RealTime from "../RealTime.ts"

const noon = Date.parse("2026-11-20T12:00:00Z")

const line = (keyId: string, at: number, nanos: number) =>
  UsageRow.encode({
    id: randomUUID(),
    created_at: at,
    request_id: "r",
    key_id: keyId,
    route: "/v1/models",
    provider: "upstream",
    status_code: 200,
    latency_ms: 1,
    usage_source: "reported",
    cost_nanos: nanos,
    cost_source: "none",
    streamed: false,
    fallback_count: 0
  })

type Action =
  | { readonly _tag: "Ask"; readonly reserved: number }
  | { readonly _tag: "End"; readonly which: number; readonly used: number }
  /** The limit is lifted, one request of this cost is made, and the limit is set again. */
  | { readonly _tag: "Lift"; readonly used: number }
  /** Redis loses the counter, or what it knows of the scope, or both. */
  | { readonly _tag: "Lose"; readonly counter: boolean; readonly known: boolean }
  | { readonly _tag: "Wait"; readonly seconds: number }

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ _tag: fc.constant("Ask" as const), reserved: fc.nat(500) }) },
  { weight: 4, arbitrary: fc.record({ _tag: fc.constant("End" as const), which: fc.nat(20), used: fc.nat(900) }) },
  fc.record({ _tag: fc.constant("Lift" as const), used: fc.nat(900) }),
  fc.record({ _tag: fc.constant("Lose" as const), counter: fc.boolean(), known: fc.boolean() }),
  fc.record({ _tag: fc.constant("Wait" as const), seconds: fc.nat(30) })
)

it.effect("a budget's counter is what was spent and what is reserved, whatever Redis lost and operators changed", () =>
  Effect.gen(function* () {
    const redis = RealTime.layer(RedisMemory.layer({ prefix: "svc-test:" }))
    const context = yield* Layer.build(
      UsageLimits.layer.pipe(Layer.provideMerge(redis), Layer.provide(MigratedDatabase.embedded))
    )
    const { command, key: named } = Context.get(context, Redis)
    const limits = Context.get(context, UsageLimits)
    const promise = Effect.runPromiseWith(yield* Effect.context<never>())

    const play = Effect.fnUntraced(function* (actions: ReadonlyArray<Action>) {
      yield* TestClock.setTime(noon)
      const key = randomUUID()
      let since = 1
      let spent = 0
      const open: Array<{ readonly reservation: Reservation; readonly reserved: number; readonly at: number }> = []
      const admit = (reserved: number, limit = limited(1000)) =>
        Effect.flatMap(DateTime.now, (now) =>
          Effect.callback<Admission, LimitsUnavailable>((resume) =>
            limits.admitUnsafe(
              randomUUID(),
              Meters.of(
                [LimitScopes.ofKey(key, { ...neutral, daily_budget_usd: limit }, () => ({ counted: "all", since }))],
                now
              ),
              { inputTokens: 0, tokens: 0, nanos: reserved, nanosEstimated: false },
              resume
            )
          )
        )
      const settle = (reservation: Reservation | undefined, at: number, nanos: number) =>
        Effect.callback<number, RedisError>((resume) =>
          limits.settleUnsafe(reservation, { tokens: 0, nanos }, line(key, at, nanos), resume)
        )
      for (const action of actions) {
        const now = DateTime.toEpochMillis(yield* DateTime.now)
        if (action._tag === "Wait") yield* TestClock.adjust(action.seconds * 1000)
        if (action._tag === "Ask") {
          const admission = yield* admit(action.reserved)
          if (admission._tag === "Admitted") {
            open.push({ reservation: admission.reservation, reserved: action.reserved, at: now })
          }
        }
        if (action._tag === "End" && open.length > 0) {
          const [ended] = open.splice(action.which % open.length, 1)
          if (ended !== undefined) yield* settle(ended.reservation, ended.at, action.used)
          spent += action.used
        }
        if (action._tag === "Lift") {
          yield* admit(0, unlimited)
          yield* settle(undefined, now, action.used)
          spent += action.used
          since++
        }
        if (action._tag === "Lose") {
          if (action.counter) yield* command("DEL", named(`budget:daily:${key}:20261120`))
          if (action.known) yield* command("DEL", named(`limits:known:${key}`))
        }
      }
      const last = yield* admit(0)
      assert(last._tag === "Admitted", "what costs nothing is admitted")
      const reserved = open.reduce((sum, one) => sum + one.reserved, 0)
      assert.strictEqual(last.readings[0]?.used, spent + reserved)
    })

    const law = fc.asyncProperty(fc.array(action, { maxLength: 20 }), (actions) => promise(play(actions)))
    yield* Effect.promise(() => fc.assert(law, { numRuns: 60 }))
  }).pipe(Effect.scoped)
)
