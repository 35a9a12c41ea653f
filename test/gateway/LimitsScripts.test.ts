import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { type Admission, Limits, type LimitsUnavailable, type Reservation } from "../../src/gateway/Limits.ts"
import * as Meters from "../../src/gateway/Meters.ts"
import { neutral } from "../../src/gateway/model/KeyPolicy.ts"
import { limited, unlimited } from "../../src/gateway/model/Limit.ts"
import { Redis, type RedisError, type Reply } from "../../src/services/Redis.ts"
import * as MigratedDatabase from "../MigratedDatabase.ts"
import * as RealTime from "../RealTime.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"

describe.skipIf(TemporaryPrefix.server === null)("Limits: the scripts' Lua and their TypeScript", () => {
  it.effect(
    "answer the same to any sequence of admissions, settlements and passing time, and leave the same keys",
    () =>
      Effect.gen(function* () {
        const [lua, typescript] = [
          yield* gateway(TemporaryPrefix.layer),
          yield* gateway(RedisMemory.layer({ prefix: "svc-test:" }))
        ]
        const promise = Effect.runPromiseWith(yield* Effect.context<never>())
        const same = fc.asyncProperty(
          policy,
          fc.array(action, { minLength: 1, maxLength: 25 }),
          async (policy, actions) => {
            const ids = [randomUUID(), randomUUID()] as const
            const of = (id: string, now: DateTime.Utc) => Meters.of({ ...neutral, ...policy }, id, now)
            const played = (gateway: Gateway) =>
              Effect.andThen(TestClock.setTime(noon), play(gateway, ids, of, actions))
            assert.deepStrictEqual(await promise(played(typescript)), await promise(played(lua)))
          }
        )
        yield* Effect.promise(() => fc.assert(same, { numRuns: 100 }))
      }).pipe(Effect.scoped)
  )
})

interface Gateway {
  readonly limits: Limits["Service"]
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
    const limits = yield* Layer.build(Limits.layer.pipe(Layer.provide([Layer.succeed(Redis, real), database])))
    return { redis: real, limits: Context.get(limits, Limits) }
  })

const database = MigratedDatabase.embedded

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
      readonly nanosGuessed: boolean
    }
  | { readonly _tag: "Settle"; readonly which: ReadonlyArray<number>; readonly tokens: number; readonly nanos: number }
  | { readonly _tag: "Wait"; readonly ms: number }

const play = Effect.fnUntraced(function* (
  { limits, redis }: Gateway,
  ids: readonly [string, string],
  meters: (id: string, now: DateTime.Utc) => ReadonlyArray<Meters.Meter>,
  actions: ReadonlyArray<Action>
) {
  const reservations: Array<Reservation> = []
  const said: Array<unknown> = []
  for (const [index, action] of actions.entries()) {
    if (action._tag === "Wait") yield* TestClock.adjust(action.ms)
    if (action._tag === "Settle") {
      const chosen = action.which.map((which) => reservations[which % Math.max(1, reservations.length)])
      yield* Effect.forEach(
        chosen,
        (reservation) =>
          Effect.callback<number, RedisError>((resume) => limits.settle(reservation, action, "{}", resume)),
        atOnce
      )
    }
    if (action._tag === "Admit") {
      const wanted = { ...action, tokens: action.inputTokens + action.output }
      const now = yield* DateTime.now
      const [id, other] = ids
      const [mine, theirs] = [meters(id, now), meters(other, now)]
      const admissions = yield* Effect.forEach(
        Array.from({ length: action.times }, (_, time) => time),
        (time) =>
          Effect.callback<Admission, LimitsUnavailable>((resume) =>
            time < action.others
              ? limits.admit(`r-${index}-${time}`, other, theirs, wanted, () => "all", resume)
              : limits.admit(`r-${index}-${time}`, id, mine, wanted, () => "all", resume)
          ),
        atOnce
      )
      for (const admission of admissions) {
        if (admission._tag === "Admitted") reservations.push(admission.reservation)
        const readings = admission._tag === "Admitted" ? admission.readings : [admission.reading]
        said.push(readings.map(({ meter, used }) => [meter.key, used]))
      }
    }
    said.push(yield* dump(redis, ids, reservations))
  }
  return said
})

/** In one turn of the event loop: they share a script. */
const atOnce = { concurrency: "unbounded" } as const

/** Every key that admissions and settlements write, with its value; names without the deployment's prefix. */
const dump = (
  { command, key }: Redis["Service"],
  ids: ReadonlyArray<string>,
  reservations: ReadonlyArray<Reservation>
): Effect.Effect<ReadonlyArray<readonly [string, Reply]>, RedisError> => {
  const open = ids.map((id) => `limits:open:${id}`)
  const counters = new Set(reservations.flatMap(({ meters }) => meters.map((meter) => meter.key)))
  const marks = reservations.map(({ keyId, member }) => `limits:open:${keyId}:${member.split(" ", 1)[0]}`)
  const unprefixed = (reply: Reply): Reply =>
    typeof reply === "string" ? reply.replaceAll(key(""), "") : Array.isArray(reply) ? reply.map(unprefixed) : reply
  return Effect.all([
    ...[...counters, ...marks].map((name) => Effect.map(command("GET", key(name)), (value) => [name, value] as const)),
    ...ids.map((id) =>
      Effect.map(
        command("HGETALL", key(`limits:known:${id}`)),
        (value) => ["known", Array.isArray(value) ? value.toSorted() : value] as const
      )
    ),
    ...open.map((open) =>
      Effect.map(
        command("ZRANGEBYSCORE", key(open), "-inf", "+inf", "WITHSCORES"),
        (value) => ["open", unprefixed(value)] as const
      )
    )
  ])
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
      nanosGuessed: fc.boolean()
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
  fc.record({
    _tag: fc.constant("Wait" as const),
    ms: fc.constantFrom(1, 30_000, 60_000, 899_999, 900_000, 43_200_000)
  })
)
