import { inspect } from "node:util"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Layer, Metric, Option, Redacted, Schedule, Stream } from "effect"
import { SqlClient } from "effect/sql"
import * as DatabaseEmbedded from "../../layers/DatabaseEmbedded.ts"
import * as DatabasePostgres from "../../layers/DatabasePostgres.ts"
import { statements } from "../../layers/postgres/InstrumentedSql.ts"
import { Contract, DatabaseContract } from "../../layers/testing/index.ts"
import { Database, StatementDeadline } from "../../src/services/Database.ts"
import * as TcpProxy from "../TcpProxy.ts"
import * as TemporaryData from "../TemporaryData.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"

const server = new URL(TemporaryDatabase.server ?? "postgres://none")

const at = (parts: { readonly [part in "password" | "pathname" | "host"]?: string }) =>
  Object.assign(new URL(server), parts).href

/** A promise of the variants in `layers` alone. */
const counts = Contract.law(
  "counts every statement, and those of a transaction with its control",
  Effect.gen(function* () {
    const { sql, transaction, notify } = yield* Database
    const sent = <A, E, R>(work: Effect.Effect<A, E, R>) =>
      Effect.gen(function* () {
        const before = yield* Metric.value(statements)
        yield* work
        return (yield* Metric.value(statements)).count - before.count
      })
    assert.strictEqual(yield* sent(Effect.void), 0)
    assert.strictEqual(yield* sent(sql`SELECT 1`), 1)
    assert.strictEqual(yield* sent(sql`SELECT 1`.values), 1)
    assert.strictEqual(yield* sent(Stream.runDrain(sql`SELECT 1`.stream)), 1)
    assert.strictEqual(yield* sent(Effect.ignore(sql`SELECT nothing`)), 1)
    assert.strictEqual(yield* sent(notify("counted", "")), 1)
    assert.strictEqual(yield* sent(transaction(Effect.andThen(sql`SELECT 1`, sql`SELECT 2`))), 4)
    assert.strictEqual(yield* sent(transaction(transaction(sql`SELECT 1`))), 5)
  })
)

const laws = { ...DatabaseContract.suite, laws: [...DatabaseContract.suite.laws, counts] }

const suite = <E>(name: string, layer: Layer.Layer<Database, E>) =>
  Contract.register(laws, { name, layer }, { afterAll, describe, it })

suite("embedded", DatabaseEmbedded.layer)

suite("embedded on disk", DatabaseEmbedded.layerOnDisk.pipe(Layer.provide(TemporaryData.layer)))

describe.skipIf(TemporaryDatabase.server === null)("on a server", () => {
  suite("postgres", TemporaryDatabase.layer)

  it.live("resolves a real deadlock: both transactions commit", () =>
    Effect.gen(function* () {
      const { sql, transaction } = yield* Database
      yield* sql`CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL)`
      yield* sql`INSERT INTO accounts VALUES (1, 0), (2, 0)`
      const arrived = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
      const move = (me: 0 | 1, first: number, second: number) =>
        transaction(
          Effect.gen(function* () {
            yield* sql`UPDATE accounts SET balance = balance + 1 WHERE id = ${first}`
            yield* Deferred.succeed(arrived[me], undefined)
            yield* Deferred.await(arrived[1 - me]!)
            yield* sql`UPDATE accounts SET balance = balance + 1 WHERE id = ${second}`
          })
        )
      yield* Effect.all([move(0, 1, 2), move(1, 2, 1)], { concurrency: 2 })
      assert.deepStrictEqual(yield* sql`SELECT balance FROM accounts ORDER BY id`, [{ balance: 2 }, { balance: 2 }])
    }).pipe(Effect.provide(TemporaryDatabase.layer))
  )

  it.live("repeats serialisable work until no update is lost", () =>
    Effect.gen(function* () {
      const { sql, transaction } = yield* Database
      yield* sql`CREATE TABLE counter (n int NOT NULL)`
      yield* sql`INSERT INTO counter VALUES (0)`
      const arrived = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
      const increment = (me: 0 | 1) =>
        transaction(
          Effect.gen(function* () {
            const [row] = yield* sql<{ n: number }>`SELECT n FROM counter`
            yield* Deferred.succeed(arrived[me], undefined)
            yield* Deferred.await(arrived[1 - me]!)
            yield* sql`UPDATE counter SET n = ${row!.n + 1}`
          })
        ).pipe(Effect.provideService(SqlClient.BeginTransaction, "BEGIN ISOLATION LEVEL SERIALIZABLE"))
      yield* Effect.all([increment(0), increment(1)], { concurrency: 2 })
      assert.deepStrictEqual(yield* sql`SELECT n FROM counter`, [{ n: 2 }])
    }).pipe(Effect.provide(TemporaryDatabase.layer))
  )

  describe("start", () => {
    const password = "s3cr3t-Passw0rd"
    const unreachable: ReadonlyArray<readonly [what: string, url: string]> = [
      ["nothing listens", `postgres://someone:${password}@127.0.0.1:1/svc`],
      ["the database is unknown", at({ password, pathname: "/svc_no_such_database" })],
      ["the URL is none", `postgres://someone:${password}@[127.0.0.1/svc`]
    ]
    it.live.each(unreachable)("fails typed, fast and without the password: %s", ([, url]) =>
      Effect.gen(function* () {
        const [elapsed, error] = yield* Effect.timed(startFailure(url))
        assert.isBelow(Duration.toMillis(elapsed), 4_500)
        assert.notInclude(inspect(error, { depth: 10 }), password)
      })
    )

    it.live("fails typed when the server accepts and never answers", () =>
      Effect.gen(function* () {
        const proxy = yield* proxied
        yield* proxy.freeze
        const [elapsed, error] = yield* Effect.timed(
          startFailure(`postgres://x:${password}@127.0.0.1:${proxy.port}/svc`)
        )
        assert.isBelow(Duration.toMillis(elapsed), 6_000)
        assert.strictEqual(error.reason._tag, "ConnectionError")
        assert.notInclude(inspect(error, { depth: 10 }), password)
      }).pipe(Effect.scoped)
    )
  })

  it.live("fails a statement typed when its backend is terminated, and answers the next", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const waiting = yield* Effect.forkChild(Effect.flip(sql`SELECT pg_sleep(60) -- doomed`))
      yield* terminate(sql, "%-- doomed")
      assert.strictEqual((yield* Fiber.join(waiting)).reason._tag, "ConnectionError")
      assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
    }).pipe(Effect.provide(TemporaryDatabase.layer))
  )

  it.live("fails a transaction typed when its backend is terminated, nested or between statements", () =>
    Effect.gen(function* () {
      const { sql, transaction } = yield* Database
      const terminateMe = Effect.gen(function* () {
        const [me] = yield* sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`
        yield* TemporaryDatabase.administer(`SELECT pg_terminate_backend(${me!.pid}, 5000)`)
      })
      const direct = yield* Effect.flip(transaction(Effect.andThen(terminateMe, sql`SELECT 1`)))
      assert.strictEqual(direct._tag === "SqlError" && direct.reason._tag, "ConnectionError")
      const nested = yield* Effect.flip(transaction(transaction(Effect.andThen(terminateMe, sql`SELECT 1`))))
      assert.strictEqual(nested._tag === "SqlError" && nested.reason._tag, "ConnectionError")
      const own = yield* Effect.exit(transaction(Effect.andThen(terminateMe, Effect.fail("my own reason"))))
      assert.deepStrictEqual(own, Exit.fail("my own reason"))
      assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
    }).pipe(Effect.provide(TemporaryDatabase.layer))
  )

  it.live("fails every follower when the listening backend is terminated, and can be followed again", () =>
    Effect.gen(function* () {
      const { sql, changes, notify } = yield* Database
      const followers = yield* Effect.all([changes("lost"), changes("lost"), changes("too")])
      yield* terminate(sql, "%")
      for (const notices of followers)
        assert.strictEqual((yield* Effect.flip(Stream.runDrain(notices)))._tag, "SqlError")
      const again = yield* changes("lost")
      yield* notify("lost", "found")
      assert.deepStrictEqual(yield* Stream.runHead(again), Option.some("found"))
    }).pipe(Effect.scoped, Effect.provide(TemporaryDatabase.layer))
  )

  it.live("recovers without a restart when the server goes away and comes back", () =>
    Effect.gen(function* () {
      const proxy = yield* proxied
      yield* Effect.gen(function* () {
        const { sql, changes, notify, ping } = yield* Database
        const notices = yield* changes("outage")
        yield* proxy.cut
        assert.strictEqual((yield* Effect.flip(Stream.runDrain(notices)))._tag, "SqlError")
        assert.strictEqual((yield* Effect.flip(ping)).reason._tag, "ConnectionError")
        assert.strictEqual((yield* Effect.flip(changes("outage"))).reason._tag, "ConnectionError")
        yield* proxy.restore
        yield* ping
        assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
        const again = yield* changes("outage")
        yield* notify("outage", "over")
        assert.deepStrictEqual(yield* Stream.runHead(again), Option.some("over"))
      }).pipe(Effect.scoped, Effect.provide(DatabasePostgres.layer({ url: through(proxy) })))
    }).pipe(Effect.scoped)
  )

  it.live("answers a ping while every session of the pool is busy", () =>
    Effect.gen(function* () {
      const { ping, sql } = yield* Database
      const busy = yield* Effect.forkChild(sql`SELECT pg_sleep(60)`, { startImmediately: true })
      const waiting = yield* Effect.forkChild(sql`SELECT 1`, { startImmediately: true })
      yield* ping
      assert.isUndefined(waiting.pollUnsafe())
      yield* Fiber.interrupt(busy)
      yield* Fiber.join(waiting)
    }).pipe(
      Effect.provide(
        Layer.unwrap(Effect.map(TemporaryDatabase.make, (url) => DatabasePostgres.layer({ url, maxConnections: 1 })))
      )
    )
  )

  it.live("fails a ping and the followers of a server that freezes, and recovers when it thaws", () =>
    Effect.gen(function* () {
      const proxy = yield* proxied
      yield* Effect.gen(function* () {
        const { changes, ping } = yield* Database
        const notices = yield* changes("frozen")
        yield* proxy.freeze
        const [elapsed, error] = yield* Effect.timed(Effect.flip(ping))
        assert.strictEqual(error.reason._tag, "ConnectionError")
        assert.isBelow(Duration.toMillis(elapsed), 10_000)
        const [silence, lost] = yield* Effect.timed(Effect.flip(Stream.runDrain(notices)))
        assert.strictEqual(lost.reason._tag, "ConnectionError")
        assert.isBelow(Duration.toMillis(silence), 10_000)
        yield* proxy.thaw
        yield* ping
      }).pipe(Effect.scoped, Effect.provide(DatabasePostgres.layer({ url: through(proxy) })))
    }).pipe(Effect.scoped)
  )

  it.live(
    "fails what has a deadline when the server falls silent: a statement, a transaction, and who waits for a session",
    () =>
      Effect.gen(function* () {
        const proxy = yield* proxied
        yield* Effect.gen(function* () {
          const { sql, transaction } = yield* Database
          yield* sql`SELECT 1`
          yield* proxy.freeze
          const errors = yield* Effect.all(
            [
              Effect.flip(sql`SELECT 1`),
              Effect.flip(transaction(sql`SELECT 2`)),
              Effect.flip(sql`SELECT 3`),
              Effect.flip(sql`SELECT 4`.values)
            ],
            { concurrency: "unbounded" }
          ).pipe(Effect.provideService(StatementDeadline, Duration.seconds(1)), Effect.timeout("20 seconds"))
          assert.deepStrictEqual(
            errors.map(({ reason }) => reason._tag),
            ["ConnectionError", "ConnectionError", "ConnectionError", "ConnectionError"]
          )
          yield* proxy.thaw
          assert.deepStrictEqual(yield* Effect.retry(sql`SELECT 5 AS five`, { times: 3 }), [{ five: 5 }])
        }).pipe(Effect.provide(DatabasePostgres.layer({ url: through(proxy), maxConnections: 2 })))
      }).pipe(Effect.scoped)
  )

  it.live("closes in time when the server hangs, whatever is under way", () =>
    Effect.gen(function* () {
      const proxy = yield* proxied
      const [elapsed] = yield* Effect.gen(function* () {
        const { changes, ping, sql, transaction } = yield* Database
        yield* changes("kept")
        yield* proxy.freeze
        yield* Effect.scoped(changes("left")).pipe(Effect.timeoutOption("100 millis"), Effect.forkScoped)
        yield* Effect.forkScoped(transaction(sql`SELECT 1`), { startImmediately: true })
        yield* Effect.flip(ping)
      }).pipe(Effect.scoped, Effect.provide(DatabasePostgres.layer({ url: through(proxy) })), Effect.timed)
      assert.isBelow(Duration.toMillis(elapsed), 30_000)
    }).pipe(Effect.scoped)
  )
})

const proxied = TcpProxy.make({ host: server.hostname, port: Number(server.port || 5432) })

const through = (proxy: TcpProxy.TcpProxy) => Redacted.make(at({ host: `127.0.0.1:${proxy.port}` }))

const startFailure = (url: string) =>
  Database.pipe(Effect.provide(DatabasePostgres.layer({ url: Redacted.make(url) })), Effect.flip)

/** Ends the sessions of this test's database (but not the one that asks) that run a statement like `pattern`. */
const terminate = (sql: SqlClient.SqlClient, pattern: string) =>
  sql`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE ${pattern}`.pipe(
    Effect.repeat({ until: (ended) => ended.length > 0, schedule: Schedule.spaced("10 millis") })
  )
