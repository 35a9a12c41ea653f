import { randomUUID } from "node:crypto"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Effect, Exit, Fiber, Layer, Redacted } from "effect"
import * as DatabasePostgres from "../../../layers/DatabasePostgres.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { type Admission, type LimitsUnavailable, UsageLimits } from "../../../src/gateway/limits/UsageLimits.ts"
import { neutral } from "../../../src/policy/KeyPolicy.ts"
import { limited } from "../../../src/policy/Limit.ts"
import { Database } from "../../../src/services/Database.ts"
import * as LimitScopes from "../../../src/state/limits/LimitScopes.ts"
import * as Meters from "../../../src/state/limits/Meters.ts"
import { eventually } from "../../Eventually.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"

const wanted = { inputTokens: 0, tokens: 0, nanos: 10, nanosEstimated: false }

/** A gateway's limits on a database of its own, where somebody holds the tables of usage until `released`. */
const make = Effect.gen(function* () {
  const url = yield* TemporaryDatabase.make
  const database = yield* Layer.build(MigratedDatabase.of(DatabasePostgres.layer({ url })))
  const { sql } = Context.get(database, Database)
  const context = yield* Layer.build(
    UsageLimits.layer.pipe(Layer.provide([Layer.succeedContext(database), RedisMemory.layer({ prefix: "svc-test:" })]))
  )
  const limits = Context.get(context, UsageLimits)
  const holder = yield* PgConnection.make({ url })
  yield* holder.query("BEGIN")
  yield* holder.query("LOCK TABLE usage_events, usage_rollups IN ACCESS EXCLUSIVE MODE")
  const admit = (key: string) =>
    Effect.flatMap(DateTime.now, (now) =>
      Effect.callback<Admission, LimitsUnavailable>((resume) =>
        limits.admitUnsafe(
          randomUUID(),
          Meters.of([LimitScopes.ofKey(key, { ...neutral, daily_budget_usd: limited(1) })], now),
          wanted,
          resume
        )
      )
    )
  const name = new URL(Redacted.value(url)).pathname.slice(1)
  /** Sessions that wait for the tables. */
  const waiting = Effect.map(
    TemporaryDatabase.administer(
      `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '${name}'`
    ),
    ({ rowCount }) => rowCount
  )
  return { admit, waiting, sql, released: holder.query("COMMIT") }
})

describe.skipIf(TemporaryDatabase.server === null)("a counter that is read from the records", () => {
  it.live("is read once for all requests of a key, and goes on being read when they have given up", () =>
    Effect.gen(function* () {
      const { admit, released, waiting } = yield* make
      const key = randomUUID()
      const asked = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 50 }, () => Effect.exit(admit(key))),
          { concurrency: "unbounded" }
        )
      )
      yield* eventually(waiting, (n) => n === 1)
      const exits = yield* Fiber.join(asked)
      assert.isTrue(exits.every(Exit.isFailure))
      assert.strictEqual(yield* waiting, 1)
      yield* released
      yield* eventually(Effect.exit(admit(key)), Exit.isSuccess)
    })
  )

  it.live("waits for its turn where many are, so that keys can still be looked up", () =>
    Effect.gen(function* () {
      const { admit, released, sql, waiting } = yield* make
      const keys = Array.from({ length: 40 }, () => randomUUID())
      yield* Effect.forkChild(
        Effect.forEach(keys, (key) => Effect.exit(admit(key)), { concurrency: "unbounded", discard: true })
      )
      yield* eventually(waiting, (n) => n === 3)
      yield* Effect.all(
        Array.from({ length: 7 }, () => sql`SELECT id FROM api_keys`),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(yield* waiting, 3)
      yield* released
      yield* Effect.forEach(keys, (key) => eventually(Effect.exit(admit(key)), Exit.isSuccess))
    })
  )
})
