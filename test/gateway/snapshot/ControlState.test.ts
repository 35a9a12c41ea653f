import { assert, layer } from "@effect/vitest"
import { Clock, Context, Deferred, type Duration, Effect, Fiber, Layer, Option, Stream } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { ControlState } from "../../../src/gateway/snapshot/ControlState.ts"
import { unusableReason } from "../../../src/policy/KeyState.ts"
import { limited } from "../../../src/policy/Limit.ts"
import { Database } from "../../../src/services/Database.ts"
import * as Changes from "../../../src/state/Changes.ts"
import { digestHex } from "../../../src/state/Secret.ts"
import { Vault } from "../../../src/state/Vault.ts"
import { eventually } from "../../Eventually.ts"
import * as RealTime from "../../RealTime.ts"
import * as Proxy from "../Proxy.ts"

layer(Proxy.database)("ControlState", (it) => {
  it.effect("sees an edit of the configuration as soon as its notice comes", () =>
    Effect.gen(function* () {
      const { state } = yield* started()
      assert.strictEqual(state.snapshot().routes.get("models")?.timeoutMs, 120_000)
      yield* Proxy.configureRoute("models", { timeoutMs: 77 })
      yield* soon(timeoutOfModels(state), 77)
    })
  )

  it.effect("sees an edit, a revocation and a new mapping of a key that it knows", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { state } = yield* started()
      const key = yield* Proxy.issueKey({ rpm_limit: 5 }, { project: true })
      const record = Effect.map(state.findKey(digestHex(key.raw)), Option.getOrThrow)
      assert.deepInclude((yield* record).ownLayer.policy, { rpm_limit: limited(5), tpm_limit: { _tag: "Unlimited" } })
      yield* sql`UPDATE api_keys SET policy = '{"rpm_limit":9}' WHERE id = ${key.id}`
      yield* Changes.publish({ _tag: "Key", id: key.id })
      yield* soon(
        Effect.map(record, ({ ownLayer }) => ownLayer.policy.rpm_limit),
        limited(9)
      )
      yield* sql`INSERT INTO upstream_credential_mappings (scope, project_id, sealed_credential) VALUES ('project', ${key.projectId}, 'clear.mapped')`
      yield* Changes.publish({ _tag: "Project", id: key.projectId ?? "" })
      yield* soon(
        Effect.map(record, ({ projectMapping }) => projectMapping.secret._tag),
        "Present"
      )
      yield* sql`UPDATE api_keys SET revoked_at = now() WHERE id = ${key.id}`
      yield* Changes.publish({ _tag: "Key", id: key.id })
      yield* soon(
        Effect.map(record, (record) => unusableReason(record, 0)),
        "revoked_virtual_key"
      )
    })
  )

  it.effect("never remembers what it asked before a revocation, and was answered after", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const answered = yield* Deferred.make<void>()
      const released = yield* Deferred.make<void>()
      const { state } = yield* started({
        onKey: (query) =>
          Effect.tap(query, () => Effect.andThen(Deferred.succeed(answered, undefined), Deferred.await(released)))
      })
      const key = yield* Proxy.issueKey()
      const asking = yield* Effect.forkChild(state.findKey(digestHex(key.raw)))
      yield* Deferred.await(answered)
      yield* sql`UPDATE api_keys SET revoked_at = now() WHERE id = ${key.id}`
      yield* Changes.publish({ _tag: "Key", id: key.id })
      // notices come in their order: when this one is here, the one before it was
      yield* Proxy.configureRoute("models", { timeoutMs: 78 })
      yield* soon(timeoutOfModels(state), 78)
      yield* Deferred.succeed(released, undefined)
      const before = Option.getOrThrow(yield* Fiber.join(asking))
      const after = Option.getOrThrow(yield* state.findKey(digestHex(key.raw)))
      assert.deepStrictEqual([unusableReason(before, 0), unusableReason(after, 0)], [undefined, "revoked_virtual_key"])
    })
  )

  it.effect("a revocation waits for no load of the configuration, however long one takes", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const released = yield* Deferred.make<void>()
      let held = false
      let loads = 0
      const { state } = yield* started({
        onConfiguration: (query) =>
          Effect.suspend(() => {
            loads++
            return held ? Effect.andThen(Deferred.await(released), query) : query
          })
      })
      const key = yield* Proxy.issueKey()
      const record = Effect.map(state.findKey(digestHex(key.raw)), Option.getOrThrow)
      yield* record
      held = true
      const before = loads
      for (let timeoutMs = 1; timeoutMs <= 50; timeoutMs++) yield* Proxy.configureRoute("models", { timeoutMs })
      yield* sql`UPDATE api_keys SET revoked_at = now() WHERE id = ${key.id}`
      yield* Changes.publish({ _tag: "Key", id: key.id })
      yield* soon(
        Effect.map(record, (record) => unusableReason(record, 0)),
        "revoked_virtual_key"
      )
      assert.strictEqual(state.snapshot().routes.get("models")?.timeoutMs, 120_000)
      held = false
      yield* Deferred.succeed(released, undefined)
      yield* soon(timeoutOfModels(state), 50)
      // the load that ran when the first notice came, and one for all that came meanwhile
      assert.isAtMost(loads - before, 2)
    })
  )

  it.effect("a revocation and an edit of a key are heard while the configuration cannot be loaded", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      let failing: "not" | "refused" | "defect" = "not"
      const { state } = yield* started({
        onConfiguration: (query) =>
          Effect.suspend(() =>
            failing === "not" ? query : failing === "refused" ? Effect.fail(unreachable) : Effect.die("a defect")
          )
      })
      for (const why of ["refused", "defect"] as const) {
        const key = yield* Proxy.issueKey()
        const record = Effect.map(state.findKey(digestHex(key.raw)), Option.getOrThrow)
        yield* record
        failing = why
        yield* Proxy.configureRoute("models", { timeoutMs: 84 })
        yield* soon(Effect.sync(state.check), "behind")
        yield* sql`UPDATE api_keys SET revoked_at = now() WHERE id = ${key.id}`
        yield* Changes.publish({ _tag: "Key", id: key.id })
        yield* soon(
          Effect.map(record, (record) => unusableReason(record, 0)),
          "revoked_virtual_key"
        )
        failing = "not"
        const second = yield* passing("1 second")
        yield* soon(Effect.andThen(second, Effect.sync(state.check)), "current")
        assert.strictEqual(state.snapshot().routes.get("models")?.timeoutMs, 84)
      }
    })
  )

  it.effect("a database that goes away before the first load delays the start, and does not end it", () =>
    Effect.gen(function* () {
      let gone = true
      const starting = yield* Effect.forkChild(
        started({ onConfiguration: (query) => Effect.suspend(() => (gone ? Effect.fail(unreachable) : query)) })
      )
      const second = yield* passing("1 second")
      yield* RealTime.effect(Effect.sleep("50 millis"))
      gone = false
      yield* soon(
        Effect.andThen(
          second,
          Effect.sync(() => starting.pollUnsafe() !== undefined)
        ),
        true
      )
      const { state } = yield* Fiber.join(starting)
      assert.strictEqual(state.snapshot().routes.get("models")?.timeoutMs, 120_000)
    })
  )

  it.effect("a change of one project forgets that project's keys, and no others", () =>
    Effect.gen(function* () {
      const { asked, state } = yield* started()
      const [mine, other] = [yield* Proxy.issueKey({}, { project: true }), yield* Proxy.issueKey({}, { project: true })]
      const ask = Effect.forEach([mine, other], ({ raw }) => state.findKey(digestHex(raw)))
      yield* ask
      yield* Changes.publish({ _tag: "Project", id: mine.projectId ?? "" })
      yield* soon(Effect.andThen(ask, Effect.sync(asked)), 3)
    })
  )

  it.effect("while the database is gone, what is known stays in force, and what is not fails typed", () =>
    Effect.gen(function* () {
      let gone = false
      const { state } = yield* started({ onKey: (query) => (gone ? Effect.fail(unreachable) : query) })
      const [known, unknown] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      yield* state.findKey(digestHex(known.raw))
      gone = true
      assert.isTrue(Option.isSome(yield* state.findKey(digestHex(known.raw))))
      assert.strictEqual((yield* Effect.flip(state.findKey(digestHex(unknown.raw))))._tag, "ControlStateUnavailable")
      gone = false
      assert.isTrue(Option.isSome(yield* state.findKey(digestHex(unknown.raw))))
    })
  )

  it.effect("when notices are interrupted, learns what it missed all the same, and follows again", () =>
    Effect.gen(function* () {
      const { changes } = yield* Database
      const broken = yield* Deferred.make<never, SqlError.SqlError>()
      let follows = 0
      const { state } = yield* started({
        changes: (channel) =>
          Effect.suspend(() =>
            ++follows === 1 ? Effect.succeed(Stream.fromEffect(Deferred.await(broken))) : changes(channel)
          )
      })
      const key = yield* Proxy.issueKey()
      const record = state.findKey(digestHex(key.raw))
      yield* record
      yield* Effect.repeat(Effect.yieldNow, { until: () => follows === 1 })
      // nobody hears of these
      yield* Proxy.configureRoute("models", { timeoutMs: 79 })
      const { sql } = yield* Database
      yield* sql`UPDATE api_keys SET disabled = true WHERE id = ${key.id}`
      assert.strictEqual(state.snapshot().routes.get("models")?.timeoutMs, 120_000)
      yield* Deferred.fail(broken, unreachable)
      const second = yield* passing("1 second")
      yield* soon(Effect.andThen(second, timeoutOfModels(state)), 79)
      assert.strictEqual(unusableReason(Option.getOrThrow(yield* record), 0), "disabled_virtual_key")
      yield* soon(
        Effect.andThen(
          second,
          Effect.sync(() => follows)
        ),
        2
      )
      yield* Proxy.configureRoute("models", { timeoutMs: 80 })
      yield* soon(timeoutOfModels(state), 80)
    })
  )

  it.effect("follows interrupted notices again at once, then after 100 ms, and not as fast as it can", () =>
    Effect.gen(function* () {
      const { changes } = yield* Database
      let broken = yield* Deferred.make<never, SqlError.SqlError>()
      let follows = 0
      const { state } = yield* started({
        changes: (channel) =>
          Effect.suspend(() => {
            follows++
            const stream = Stream.fromEffect(Deferred.await(broken))
            return follows < 4 ? Effect.succeed(stream) : changes(channel)
          })
      })
      const reaches = (count: number) =>
        soon(
          Effect.sync(() => follows),
          count
        )
      const interrupted = Effect.gen(function* () {
        const before = broken
        broken = yield* Deferred.make<never, SqlError.SqlError>()
        yield* Deferred.fail(before, unreachable)
      })
      yield* reaches(1)
      yield* Proxy.configureRoute("models", { timeoutMs: 85 })
      yield* interrupted
      yield* reaches(2)
      yield* soon(timeoutOfModels(state), 85)
      yield* interrupted
      yield* RealTime.effect(Effect.sleep("50 millis"))
      assert.strictEqual(follows, 2)
      yield* TestClock.adjust("100 millis")
      yield* reaches(3)
      yield* interrupted
      yield* TestClock.adjust("200 millis")
      yield* reaches(4)
      yield* Proxy.configureRoute("models", { timeoutMs: 86 })
      yield* soon(timeoutOfModels(state), 86)
    })
  )

  it.effect("when notices fall silent, learns within two seconds what it missed", () =>
    Effect.gen(function* () {
      const { state } = yield* started({ changes: () => Effect.succeed(Stream.never) })
      yield* Proxy.configureRoute("models", { timeoutMs: 83 })
      const second = yield* passing("1 second")
      yield* soon(Effect.andThen(second, timeoutOfModels(state)), 83)
    })
  )

  it.effect("a notice that it cannot read may be about anything: keys are forgotten, and it goes on", () =>
    Effect.gen(function* () {
      const { notify } = yield* Database
      const { state } = yield* started()
      yield* Proxy.configureRoute("models", { timeoutMs: 81 })
      yield* soon(timeoutOfModels(state), 81)
      const { sql } = yield* Database
      const key = yield* Proxy.issueKey()
      const record = Effect.map(state.findKey(digestHex(key.raw)), Option.getOrThrow)
      for (const notice of ["not a change", '{"epoch":1000000,"change":{"_tag":"OfANewerVersion"}}']) {
        yield* sql`UPDATE api_keys SET disabled = false WHERE id = ${key.id}`
        yield* Changes.publish({ _tag: "Key", id: key.id })
        yield* soon(
          Effect.map(record, (record) => unusableReason(record, 0)),
          undefined
        )
        yield* sql`UPDATE api_keys SET disabled = true WHERE id = ${key.id}`
        yield* notify(Changes.channel, notice)
        yield* soon(
          Effect.map(record, (record) => unusableReason(record, 0)),
          "disabled_virtual_key"
        )
      }
      yield* Proxy.configureRoute("models", { timeoutMs: 82 })
      yield* soon(timeoutOfModels(state), 82)
    })
  )
})

const unreachable = new SqlError.SqlError({
  reason: new SqlError.ConnectionError({ cause: new Error("gone"), message: "gone", operation: "connect" })
})

type Query = Effect.Effect<ReadonlyArray<object>, SqlError.SqlError>

interface Interference {
  readonly changes?: Database["Service"]["changes"]
  /** What becomes of the query for a key. */
  readonly onKey?: (query: Query) => Query
  /** What becomes of a query that each load of the configuration makes once. */
  readonly onConfiguration?: (query: Query) => Query
}

/** The state of a gateway that starts now on the seeds, and how often it has asked the database for a key. */
const started = Effect.fnUntraced(function* ({
  changes,
  onConfiguration = (query) => query,
  onKey = (query) => query
}: Interference = {}) {
  yield* Proxy.reset
  const database = yield* Database
  let asked = 0
  const sql: SqlClient.SqlClient = new globalThis.Proxy(database.sql, {
    apply: (target, self, args) => {
      const query: Query = Reflect.apply(target, self, args)
      if (String(args[0]).includes("FROM canonical_routes")) return onConfiguration(query)
      if (!String(args[0]).includes("FROM api_keys")) return query
      return Effect.suspend(() => {
        asked++
        return onKey(query)
      })
    }
  })
  const door = Database.of({ ...database, sql, ...(changes && { changes }) })
  const context = yield* Layer.build(
    Layer.fresh(ControlState.layer).pipe(Layer.provide([Layer.succeed(Database, door), Vault.layer(Option.none())]))
  )
  const state = Context.get(context, ControlState)
  // it loads once more when it follows the notices
  const first = state.snapshot()
  yield* soon(
    Effect.sync(() => state.snapshot() !== first),
    true
  )
  return { state, asked: () => asked }
})

const timeoutOfModels = (state: ControlState["Service"]) =>
  Effect.sync(() => state.snapshot().routes.get("models")?.timeoutMs)

/** Lets time pass on the test's clock, whatever clock its asker goes by. */
const passing = (duration: Duration.Input) =>
  Effect.map(Clock.Clock, (clock) => Effect.provideService(TestClock.adjust(duration), Clock.Clock, clock))

const soon = <A, E, R>(ask: Effect.Effect<A, E, R>, expected: A) =>
  RealTime.effect(
    eventually(
      Effect.map(ask, (answer) => JSON.stringify(answer)),
      (answer) => answer === JSON.stringify(expected)
    )
  )
