import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import { Deferred, Effect, Exit, Fiber, Option, Stream } from "effect"
import { Database } from "../../../src/services/Database.ts"
import { law, type Suite } from "./law/Law.ts"

const conflicts = [
  ["DeadlockError", "40P01"],
  ["SerializationError", "40001"]
] as const

/** The laws of `Database`. Each law makes its tables and removes them. They need no migrations. */
export const suite: Suite<Database> = {
  door: "Database",
  laws: [
    law(
      "commits a transaction",
      Effect.gen(function* () {
        const { transaction } = yield* Database
        const ledger = yield* Ledger
        yield* transaction(Effect.andThen(ledger.add(1), ledger.add(2)))
        assert.deepStrictEqual(yield* ledger.rows, [1, 2])
      })
    ),

    law(
      "rolls back when the work fails, dies or is interrupted",
      Effect.gen(function* () {
        const { transaction } = yield* Database
        const ledger = yield* Ledger
        const failed = yield* Effect.exit(transaction(Effect.andThen(ledger.add(1), Effect.fail("no"))))
        assert.deepStrictEqual(failed, Exit.fail("no"))
        const died = yield* Effect.exit(transaction(Effect.andThen(ledger.add(2), Effect.die("bug"))))
        assert.deepStrictEqual(died, Exit.die("bug"))
        const began = yield* Deferred.make<void>()
        const interrupted = yield* transaction(
          ledger.add(3).pipe(Effect.andThen(Deferred.succeed(began, undefined)), Effect.andThen(Effect.never))
        ).pipe(Effect.forkChild)
        yield* Deferred.await(began)
        yield* Fiber.interrupt(interrupted)
        assert.deepStrictEqual(yield* ledger.rows, [])
      })
    ),

    law(
      "rolls back a nested transaction alone",
      Effect.gen(function* () {
        const { transaction } = yield* Database
        const ledger = yield* Ledger
        yield* transaction(
          Effect.gen(function* () {
            yield* ledger.add(1)
            yield* Effect.flip(transaction(Effect.andThen(ledger.add(2), ledger.add(2))))
            yield* transaction(ledger.add(3))
          })
        )
        assert.deepStrictEqual(yield* ledger.rows, [1, 3])
      })
    ),

    law(
      "fails a transaction that ignored the failure of a statement",
      Effect.gen(function* () {
        const { transaction } = yield* Database
        const ledger = yield* Ledger
        const error = yield* Effect.flip(transaction(ledger.add(1).pipe(Effect.andThen(ledger.add(1)), Effect.ignore)))
        assert.strictEqual(error.reason._tag, "UnknownError")
        assert.deepStrictEqual(yield* ledger.rows, [])
      })
    ),

    ...conflicts.map(([conflict, code]) =>
      law(
        `runs a transaction again after a ${conflict}, at most three times in total`,
        Effect.gen(function* () {
          const { sql, transaction } = yield* Database
          const ledger = yield* Ledger
          let attempts = 0
          const conflicting = Effect.andThen(
            Effect.sync(() => attempts++),
            sql.unsafe(`DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '${code}'; END $$`)
          )
          const succeedingAt = (attempt: number) =>
            transaction(
              ledger
                .add(1)
                .pipe(Effect.andThen(Effect.suspend(() => (attempts + 1 === attempt ? Effect.void : conflicting))))
            )
          yield* succeedingAt(3)
          assert.strictEqual(attempts, 2)
          assert.deepStrictEqual(yield* ledger.rows, [1])

          attempts = 0
          const error = yield* Effect.flip(transaction(conflicting))
          assert.strictEqual(error.reason._tag, conflict)
          assert.strictEqual(attempts, 3)
        })
      )
    ),

    law(
      "repeats the outermost transaction instead of a nested one",
      Effect.gen(function* () {
        const { sql, transaction } = yield* Database
        let [outer, inner] = [0, 0]
        yield* transaction(
          Effect.gen(function* () {
            outer++
            yield* transaction(
              Effect.gen(function* () {
                inner++
                yield* sql.unsafe(`DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END $$`)
              })
            )
          })
        ).pipe(Effect.flip)
        assert.deepStrictEqual([outer, inner], [3, 3])
      })
    ),

    law(
      "does not repeat work that failed for another reason",
      Effect.gen(function* () {
        const { transaction } = yield* Database
        const ledger = yield* Ledger
        let attempts = 0
        yield* Effect.flip(
          transaction(Effect.sync(() => attempts++).pipe(Effect.andThen(ledger.add(1)), Effect.andThen(ledger.add(1))))
        )
        assert.strictEqual(attempts, 1)
      })
    ),

    law(
      "names the constraint of a unique violation",
      Effect.gen(function* () {
        const ledger = yield* Ledger
        yield* ledger.add(1)
        const { reason } = yield* Effect.flip(ledger.add(1))
        assert.strictEqual(reason._tag, "UniqueViolation")
        assert.strictEqual(reason._tag === "UniqueViolation" && reason.constraint, `${ledger.table}_pkey`)
      })
    ),

    law(
      "works after a statement was refused or interrupted",
      Effect.gen(function* () {
        const { sql } = yield* Database
        assert.strictEqual((yield* Effect.flip(sql`SELECT nothing`)).reason._tag, "SqlSyntaxError")
        const slow = yield* Effect.forkChild(sql`SELECT pg_sleep(0.05)`, { startImmediately: true })
        yield* Fiber.interrupt(slow)
        assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
      })
    ),

    law(
      "keeps the JavaScript types of parameters and rows",
      Effect.gen(function* () {
        const { sql } = yield* Database
        const values = {
          big: 9_007_199_254_740_993n,
          moment: new Date("2026-11-20T12:34:56.789Z"),
          bytes: new Uint8Array([0, 1, 127, 128, 255]),
          document: { text: "naïve ☃ 🚀", list: [1, null, true], nested: { empty: {} } },
          words: ["a", "b,c", '"d"'],
          text: "line\nbreak ☃",
          missing: null
        }
        const [row] = yield* sql`SELECT
          ${values.big}::bigint AS big, ${values.moment}::timestamptz AS moment, ${values.bytes}::bytea AS bytes,
          ${JSON.stringify(values.document)}::jsonb AS document, ${values.words}::text[] AS words,
          ${values.text}::text AS text, ${values.missing}::text AS missing`
        assert.deepStrictEqual(row, values)
        const [others] = yield* sql`SELECT 1::int AS whole, 1.5::float8 AS real, 12.50::numeric AS exact,
          count(*) AS counted, '00000000-0000-4000-8000-000000000001'::uuid AS id FROM (VALUES (1), (2)) AS v`
        assert.deepStrictEqual(others, {
          whole: 1,
          real: 1.5,
          exact: "12.50",
          counted: 2n,
          id: "00000000-0000-4000-8000-000000000001"
        })
      })
    ),

    law(
      "streams rows",
      Effect.gen(function* () {
        const { sql } = yield* Database
        const rows = yield* Stream.runCollect(sql`SELECT n FROM generate_series(1, 1000) AS n`.stream)
        assert.strictEqual(rows.length, 1_000)
      })
    ),

    law(
      "responds to a ping",
      Effect.flatMap(Database, (database) => database.ping)
    ),

    law(
      "delivers a notification that is sent as soon as the subscription is active",
      Effect.gen(function* () {
        const { changes, notify } = yield* Database
        for (let round = 0; round < 25; round++) {
          const first = yield* Effect.scoped(
            Effect.gen(function* () {
              const notices = yield* changes("gapless")
              yield* notify("gapless", String(round))
              return yield* Stream.runHead(notices)
            })
          )
          assert.deepStrictEqual(first, Option.some(String(round)))
        }
      })
    ),

    law(
      "delivers any text to every subscriber of the channel, in order",
      Effect.gen(function* () {
        const { changes, notify } = yield* Database
        const payloads = ["", "plain", "naïve ☃ 🚀", "'quoted' \"twice\" \\", "x".repeat(7_999)]
        const followers = yield* Effect.all([changes("Told"), changes("Told")])
        const other = yield* changes("told")
        yield* Effect.forEach(payloads, (payload) => notify("Told", payload))
        yield* notify("told", "other")
        for (const notices of followers) {
          assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(notices, payloads.length)), payloads)
        }
        assert.deepStrictEqual(yield* Stream.runHead(other), Option.some("other"))
      })
    ),

    law(
      "refuses a notification that PostgreSQL would refuse",
      Effect.gen(function* () {
        const { notify } = yield* Database
        assert.strictEqual((yield* Effect.flip(notify("long", "x".repeat(8_000))))._tag, "SqlError")
        assert.strictEqual((yield* Effect.flip(notify("", "nameless")))._tag, "SqlError")
      })
    ),

    law(
      "refuses to listen on a name that PostgreSQL would refuse",
      Effect.gen(function* () {
        const { changes } = yield* Database
        assert.strictEqual((yield* Effect.flip(changes("")))._tag, "SqlError")
        assert.strictEqual((yield* Effect.flip(changes("é".repeat(32))))._tag, "SqlError")
        yield* changes("x".repeat(63))
      })
    ),

    law(
      "notifies when the outermost transaction commits, and never after a rollback",
      Effect.gen(function* () {
        const { changes, notify, transaction } = yield* Database
        const notices = yield* changes("committed")
        const seen: Array<string> = []
        const reader = yield* notices.pipe(
          Stream.runForEachWhile((payload) => Effect.sync(() => seen.push(payload) > 0 && payload !== "end")),
          Effect.forkChild
        )
        yield* Effect.exit(transaction(Effect.andThen(notify("committed", "rolled back"), Effect.fail("no"))))
        const inside = yield* transaction(
          Effect.gen(function* () {
            yield* notify("committed", "outer")
            yield* transaction(notify("committed", "inner"))
            yield* Effect.exit(transaction(Effect.andThen(notify("committed", "savepoint"), Effect.fail("no"))))
            return [...seen]
          })
        )
        yield* notify("committed", "end")
        yield* Fiber.join(reader)
        assert.deepStrictEqual(inside, [])
        assert.deepStrictEqual(seen, ["outer", "inner", "end"])
      })
    ),

    law(
      "ends a subscription with its scope, and can subscribe again",
      Effect.gen(function* () {
        const { changes, notify } = yield* Database
        const left = yield* Effect.scoped(changes("again"))
        assert.ok(Exit.isFailure(yield* Effect.exit(Stream.runHead(left))))
        const notices = yield* changes("again")
        yield* notify("again", "back")
        assert.deepStrictEqual(yield* Stream.runHead(notices), Option.some("back"))
      })
    )
  ]
}

/** A table of unique numbers. It is dropped with the scope. */
const Ledger = Effect.gen(function* () {
  const { sql } = yield* Database
  const table = `ledger_${randomUUID().replaceAll("-", "")}`
  yield* Effect.acquireRelease(sql`CREATE TABLE ${sql(table)} (n int PRIMARY KEY)`, () =>
    Effect.orDie(sql`DROP TABLE ${sql(table)}`)
  )
  return {
    table,
    add: (n: number) => sql`INSERT INTO ${sql(table)} VALUES (${n})`,
    rows: Effect.map(sql<{ n: number }>`SELECT n FROM ${sql(table)} ORDER BY n`, (rows) => rows.map((row) => row.n))
  }
})
