import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import {
  type Admission,
  type LimitsUnavailable,
  type Reservation,
  UsageLimits
} from "../../../src/gateway/limits/UsageLimits.ts"
import * as GuardrailPolicy from "../../../src/policy/GuardrailPolicy.ts"
import { type KeyPolicy, neutral } from "../../../src/policy/KeyPolicy.ts"
import { limited, unlimited } from "../../../src/policy/Limit.ts"
import type { PolicyLayer } from "../../../src/policy/PolicyLayer.ts"
import { Redis, type RedisError } from "../../../src/services/Redis.ts"
import * as CounterReadings from "../../../src/state/limits/CounterReadings.ts"
import * as CounterReset from "../../../src/state/limits/CounterReset.ts"
import * as LimitScopes from "../../../src/state/limits/LimitScopes.ts"
import * as Meters from "../../../src/state/limits/Meters.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as RealTime from "../../RealTime.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"

describe.skipIf(TemporaryPrefix.server === null)("Limits: the scripts' Lua and their TypeScript", () => {
  it.effect(
    "answer the same to any sequence of admissions, settlements, lost and reset counters, changed limits and passing time, and leave the same keys",
    () =>
      Effect.gen(function* () {
        const [lua, typescript] = [
          yield* gateway(TemporaryPrefix.layer),
          yield* gateway(RedisMemory.layer({ prefix: "svc-test:" }))
        ]
        const promise = Effect.runPromiseWith(yield* Effect.context<never>())
        const same = fc.asyncProperty(
          policy,
          policy,
          fc.array(action, { minLength: 1, maxLength: 25 }),
          async (own, shared, actions) => {
            const ids = [randomUUID(), randomUUID(), `team:${randomUUID()}`] as const
            const played = (gateway: Gateway) =>
              Effect.andThen(
                TestClock.setTime(noon),
                play(gateway, ids, { ...neutral, ...own }, { ...neutral, ...shared }, actions)
              )
            assert.deepStrictEqual(await promise(played(typescript)), await promise(played(lua)))
          }
        )
        yield* Effect.promise(() => fc.assert(same, { numRuns: 100, examples: [resetBeforeTwoKeysAsk()] }))
      }).pipe(Effect.scoped)
  )
})

interface Gateway {
  readonly limits: UsageLimits["Service"]
  readonly redis: Redis["Service"]
}

/** Limits go by the test's clock. Both Redis go by real time, so that nothing expires on one of them alone. */
const gateway = <E>(redis: Layer.Layer<Redis, E>) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(RealTime.layer(redis))
    const door = Context.get(context, Redis)
    const real: Redis["Service"] = {
      ...door,
      command: (name, ...args) => RealTime.effect(door.command(name, ...args)),
      run: (script, keys, args) => RealTime.effect(door.run(script, keys, args))
    }
    const limits = yield* Layer.build(UsageLimits.layer.pipe(Layer.provide([Layer.succeed(Redis, real), database])))
    return { redis: real, limits: Context.get(limits, UsageLimits) }
  })

const database = MigratedDatabase.embedded

const unlimitedRequests = { rpm_limit: unlimited, tpm_limit: unlimited, max_tokens_per_day: unlimited }

/** One key has to restore one counter, the other two, and they share a limit. */
const resetBeforeTwoKeysAsk = (): [LimitsOf, LimitsOf, Array<Action>] => [
  { ...unlimitedRequests, daily_budget_usd: limited(0.000_001), monthly_budget_usd: limited(1) },
  { ...unlimitedRequests, daily_budget_usd: limited(0.000_001), monthly_budget_usd: unlimited },
  [
    { _tag: "Reset", which: 0 },
    { _tag: "Admit", times: 2, others: 1, inputTokens: 0, output: 0, nanos: 0, nanosEstimated: true }
  ]
]

const noon = Date.parse("2026-11-20T12:00:00Z")

type Action =
  | {
      readonly _tag: "Admit"
      /** How many such requests come at once, and how many of them to another key. */
      readonly times: number
      readonly others: number
      readonly inputTokens: number
      readonly output: number
      readonly nanos: number
      readonly nanosEstimated: boolean
    }
  | { readonly _tag: "Settle"; readonly which: ReadonlyArray<number>; readonly tokens: number; readonly nanos: number }
  | { readonly _tag: "Wait"; readonly ms: number }
  /** Redis loses one of the keys that it holds. */
  | { readonly _tag: "Lose"; readonly which: number }
  /** The limits of a key, or those that the keys share, are lifted and set again. */
  | { readonly _tag: "Set"; readonly shared: boolean }
  /** An operator resets a counter of a day or month. */
  | { readonly _tag: "Reset"; readonly which: number }

const play = Effect.fnUntraced(function* (
  { limits, redis }: Gateway,
  ids: readonly [string, string, string],
  own: KeyPolicy,
  shared: KeyPolicy,
  actions: ReadonlyArray<Action>
) {
  const reservations: Array<Reservation> = []
  const names = new Set(ids.flatMap((id) => [`limits:open:${id}`, `limits:known:${id}`]))
  const said: Array<unknown> = []
  const [mine, theirs, team] = ids
  const since = { own: 0, shared: 0 }
  const metersOf = (id: string, now: DateTime.Utc) => {
    const key = LimitScopes.ofKey(id, own, () => ({ counted: "all", since: since.own }))
    const meters = Meters.of([key, LimitScopes.ofLayer(teamSharing(team, shared, since.shared)) ?? []].flat(), now)
    for (const { key } of meters.all) names.add(key)
    return meters
  }
  for (const [index, action] of actions.entries()) {
    if (action._tag === "Wait") yield* TestClock.adjust(action.ms)
    if (action._tag === "Lose") yield* redis.command("DEL", redis.key([...names][action.which % names.size] ?? ""))
    if (action._tag === "Set") since[action.shared ? "shared" : "own"]++
    if (action._tag === "Reset") {
      const durable = metersOf(mine, yield* DateTime.now).all.filter(Meters.isDurable)
      const meter = durable[action.which % Math.max(1, durable.length)]
      if (meter !== undefined) yield* Effect.provideService(CounterReset.reset(meter), Redis, redis)
    }
    if (action._tag === "Settle") {
      const chosen = action.which.map((which) => reservations[which % Math.max(1, reservations.length)])
      yield* Effect.forEach(
        chosen,
        (reservation) =>
          Effect.callback<number, RedisError>((resume) => limits.settleUnsafe(reservation, action, "{}", resume)),
        atOnce
      )
      const now = yield* DateTime.now
      for (const reservation of reservations) {
        for (const meter of reservation.meters.all) names.add(Meters.inWindowAt(meter, DateTime.toEpochMillis(now)).key)
      }
    }
    if (action._tag === "Admit") {
      const wanted = { ...action, tokens: action.inputTokens + action.output }
      const now = yield* DateTime.now
      const [ofMine, ofTheirs] = [metersOf(mine, now), metersOf(theirs, now)]
      const metersOfTime = (time: number) => (time < action.others ? ofTheirs : ofMine)
      const admit = (time: number, request = `r-${index}-${time}`) =>
        Effect.callback<Admission, LimitsUnavailable>((resume) =>
          limits.admitUnsafe(request, metersOfTime(time), wanted, resume)
        )
      // Lost counters of two keys are restored side by side, and the key that has more of them asks again later. So one
      // request of each comes first: the order of those that come at once is then the order in which they were sent.
      const ofTwoKeys = 0 < action.others && action.others < action.times
      const first = ofTwoKeys
        ? [yield* admit(0, `r-${index}-theirs`), yield* admit(action.others, `r-${index}-mine`)]
        : []
      const admissions = yield* Effect.forEach(
        Array.from({ length: action.times }, (_, time) => time),
        (time) => admit(time),
        atOnce
      )
      for (const admission of [...first, ...admissions]) {
        if (admission._tag === "Admitted") {
          const { scopeMembers } = admission.reservation
          reservations.push(admission.reservation)
          for (const id of ids)
            for (const member of scopeMembers) names.add(`limits:open:${id}:${member.split(" ", 1)[0]}`)
        }
        const readings = admission._tag === "Admitted" ? admission.readings : [admission.reading]
        said.push(readings.map(({ meter, used }) => [meter.key, used]))
      }
    }
    const at = yield* DateTime.now
    const scopes = [...metersOf(mine, at).scopes, ...metersOf(theirs, at).scopes]
    const readings = yield* Effect.provideService(
      CounterReadings.read(scopes, DateTime.toEpochMillis(at)),
      Redis,
      redis
    )
    said.push(readings.map(({ meter, ...reading }) => [meter.key, reading]))
    said.push(
      yield* Effect.forEach([...names].sort(), (name) => Effect.map(held(redis, name), (value) => [name, value]))
    )
  }
  return said
})

const teamSharing = (id: string, limits: KeyPolicy, since: number): PolicyLayer => ({
  kind: "team",
  scopeId: id.slice("team:".length),
  version: 1,
  policy: neutral,
  guardrails: GuardrailPolicy.neutral,
  shared: {
    limits,
    since: { max_tokens_per_day: since, daily_budget_usd: since, monthly_budget_usd: since }
  }
})

/** In one turn of the event loop: they share a script. */
const atOnce = { concurrency: "unbounded" } as const

/** The value of a key that admissions, settlements and restorations write. */
const held = ({ command, key }: Redis["Service"], name: string): Effect.Effect<unknown, RedisError> => {
  if (name.startsWith("limits:known:")) {
    return Effect.map(command("HGETALL", key(name)), (value) => (Array.isArray(value) ? value.toSorted() : value))
  }
  return /^limits:open:[^ ]*[0-9a-f]{12}$/.test(name)
    ? command("ZRANGEBYSCORE", key(name), "-inf", "+inf", "WITHSCORES")
    : command("GET", key(name))
}

const some = (max: number) => fc.option(fc.nat(max)).map((chosen) => (chosen === null ? unlimited : limited(chosen)))

const policy = fc.record({
  rpm_limit: some(6),
  tpm_limit: some(200),
  max_tokens_per_day: some(400),
  daily_budget_usd: fc
    .option(fc.constantFrom(0, 0.000_001, 9_000_000))
    .map((max) => (max === null ? unlimited : limited(max))),
  monthly_budget_usd: some(1)
})

type LimitsOf = typeof policy extends fc.Arbitrary<infer Limits> ? Limits : never

const nanos = fc.oneof(fc.nat(900), fc.constantFrom(0, 999_999_999, 8_999_999_999_999_999))

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      _tag: fc.constant("Admit" as const),
      times: fc.nat(5),
      others: fc.nat(2),
      inputTokens: fc.nat(60),
      output: fc.nat(60),
      nanos,
      nanosEstimated: fc.boolean()
    })
  },
  {
    weight: 3,
    arbitrary: fc.record({
      _tag: fc.constant("Settle" as const),
      which: fc.array(fc.nat(10), { minLength: 1, maxLength: 4 }),
      tokens: fc.nat(120),
      nanos
    })
  },
  fc.record({ _tag: fc.constant("Lose" as const), which: fc.nat(40) }),
  fc.record({ _tag: fc.constant("Set" as const), shared: fc.boolean() }),
  fc.record({ _tag: fc.constant("Reset" as const), which: fc.nat(8) }),
  fc.record({
    _tag: fc.constant("Wait" as const),
    ms: fc.constantFrom(1, 30_000, 60_000, 899_999, 900_000, 43_200_000)
  })
)
