import { assert, layer as describeWith } from "@effect/vitest"
import { Deferred, Effect, Layer, Option, SubscriptionRef } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as ControlApp from "../../../src/control/ControlApp.ts"
import { OwnProcess } from "../../../src/control/system/SystemFacts.ts"
import * as WatchedBroker from "../../../src/control/system/WatchedBroker.ts"
import { Lifecycle } from "../../../src/process/Lifecycle.ts"
import * as RunningProcesses from "../../../src/process/RunningProcesses.ts"
import { Database } from "../../../src/services/Database.ts"
import { Redis } from "../../../src/services/Redis.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import { eventually } from "../../Eventually.ts"
import { admin, at, call, layer, ok, refusalOf } from "../Listener.ts"

const identity = { role: "gateway", version: "1.2.3", host: "one", pid: 7 }

const own = Layer.succeed(OwnProcess, {
  role: "control",
  host: "one",
  pid: 7,
  doors: [
    { door: "database", variant: "embedded", lost_at_exit: true },
    { door: "upstream", variant: "http", lost_at_exit: false }
  ]
})

const listener = layer(EmbeddedDatabase.layer, { routes: ControlApp.layer.pipe(Layer.provide(own)) })

describeWith(listener, { excludeTestServices: true })("The system", (it) => {
  it.effect(
    "has the processes of the installation, which can be drained, the doors of this one, and the migrations",
    () =>
      Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* Layer.build(RunningProcesses.announce(identity, Effect.void))
            const processes = yield* Effect.repeat(
              Effect.map(ok("GET", `${admin}/system`), (found) => at(found, "processes")),
              { until: (found) => at(found, 0, "phase") === "serving" }
            )
            assert.strictEqual(at(processes, 0, "role"), "gateway")
            assert.strictEqual(at(processes, 0, "version"), "1.2.3")
            assert.isTrue(at(processes, 0, "answers"))
          })
        )
        const asked = yield* Deferred.make<void>()
        const reason = "a <b>new</b> version"
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* Layer.build(RunningProcesses.announce(identity, Effect.asVoid(Deferred.succeed(asked, undefined))))
            const processes = yield* eventually(
              Effect.map(ok("GET", `${admin}/system`), (found) => at(found, "processes")),
              (found) => at(found, 0, "phase") === "serving"
            )
            const id = String(at(processes, 0, "id"))
            const drain = call("POST", `${admin}/system/processes/${id}/drain`, { body: { reason } })
            assert.deepStrictEqual((yield* drain).json, { ...identity, id, reason })
            assert.isFalse(yield* Deferred.isDone(asked))
            // its next beat
            yield* SubscriptionRef.set(yield* Lifecycle, "serving")
            yield* Deferred.await(asked)
            const events = yield* ok("GET", `${admin}/audit-events?action=system:drain`)
            assert.deepInclude(at(events, 0), { target_type: "process", target_id: id, before: null })
            assert.deepStrictEqual(at(events, 0, "after"), { ...identity, id, reason })
          })
        )
        const nobody = "00000000-0000-4000-8000-000000000000"
        const gone = yield* call("POST", `${admin}/system/processes/${nobody}/drain`, { body: { reason } })
        assert.deepInclude(refusalOf(gone), { status: 404, param: "id" })
        const redis = yield* Redis
        const time = yield* Effect.map(redis.command("TIME"), (reply) => [reply].flat().map(Number)[0] ?? 0)
        const seen = { phase: "serving", startedAt: 0, seenAt: time * 1_000 }
        const older = JSON.stringify({ ...identity, ...seen, id: nobody })
        yield* redis.command("HSET", redis.key("processes"), nobody, older)
        const refused = yield* call("POST", `${admin}/system/processes/${nobody}/drain`, { body: { reason } })
        assert.deepInclude(refusalOf(refused), { status: 422, param: "id" })
        assert.include(refused.text, "1.2.3")
        yield* redis.command("HDEL", redis.key("processes"), nobody)
        const system = yield* ok("GET", `${admin}/system`)
        assert.deepStrictEqual(at(system, "processes"), [])
        assert.deepStrictEqual(
          [at(system, "role"), at(system, "phase"), at(system, "status"), at(system, "data_lost_at_exit")],
          ["control", "serving", "ready", true]
        )
        assert.isTrue(at(system, "doors", 0, "reachable"))
        assert.match(String(at(system, "doors", 0, "since")), /^\d{4}-/)
        assert.deepStrictEqual(at(system, "doors", 1), {
          ...{ door: "upstream", variant: "http", lost_at_exit: false },
          ...{ reachable: null, since: null }
        })
        assert.isAtLeast(Number(at(system, "migrations", 0, "id")), 29)
      })
  )

  it.effect(
    "counts the keys that may be used, the enabled routes and services, the layers, and the events of a day",
    () =>
      Effect.gen(function* () {
        const inventory = `${admin}/system/inventory`
        const none = { active_keys: 0, active_keys_at_least: false, services: { enabled: 0, total: 0 } }
        assert.deepInclude(yield* ok("GET", inventory), { ...none, routes: { enabled: 10, total: 10 } })
        const key = yield* ok("POST", `${admin}/keys`, { body: { owner_type: "individual" } })
        yield* ok("POST", `${admin}/keys`, { body: { owner_type: "individual" } })
        yield* ok("POST", `${admin}/keys/${at(key, "key", "id")}/disable`)
        yield* ok(
          "POST",
          `${admin}/family-a-routes/${at(yield* ok("GET", `${admin}/family-a-routes`), 0, "route_id")}/disable`
        )
        for (const name of ["one", "two"]) yield* ok("POST", `${admin}/services`, { body: { name } })
        yield* ok("POST", `${admin}/services/two/disable`)
        yield* ok("POST", `${admin}/policy-layers`, {
          body: { kind: "team", scope_id: "blue", policy: { rpm_limit: 5 } }
        })
        const events = yield* ok("GET", `${admin}/audit-events`)
        assert(Array.isArray(events) && events.length > 0)
        const { sql } = yield* Database
        yield* sql`UPDATE audit_events SET created_at = now() - interval '25 hours' WHERE sequence = 1`
        assert.deepStrictEqual(yield* ok("GET", inventory), {
          active_keys: 1,
          active_keys_at_least: false,
          policy_layers: 1,
          policy_layers_at_least: false,
          audit_events_of_day: events.length - 1,
          audit_events_of_day_at_least: false,
          routes: { enabled: 9, total: 10 },
          services: { enabled: 1, total: 2 }
        })
      })
  )
})

const processes = Lifecycle.layer("serving").pipe(Layer.provideMerge(RedisMemory.layer({ prefix: "test:" })))

describeWith(processes)("The processes of an installation", (it) => {
  it.effect("are those that say so every ten seconds; a killed one is forgotten", () =>
    Effect.gen(function* () {
      const redis = yield* Redis
      const [seconds = 0] = yield* Effect.map(redis.command("TIME"), (reply) => [reply].flat().map(Number))
      const killed: RunningProcesses.RunningProcess = {
        ...identity,
        ...{ id: "killed", phase: "serving", startedAt: 0, seenAt: (seconds - 31) * 1_000 }
      }
      yield* redis.command("HSET", redis.key("processes"), "killed", JSON.stringify(killed), "newer", `{"v":2}`)
      assert.deepStrictEqual(yield* RunningProcesses.list, [])
      yield* Layer.build(RunningProcesses.announce(identity, Effect.void))
      const found = yield* Effect.repeat(Effect.andThen(TestClock.adjust("10 seconds"), RunningProcesses.list), {
        until: (list) => list.length > 0
      })
      assert.deepStrictEqual(
        found.map(({ phase, pid, role }) => ({ phase, pid, role })),
        [{ phase: "serving", pid: 7, role: "gateway" }]
      )
      const kept = yield* redis.command("HGETALL", redis.key("processes"))
      assert.notInclude(JSON.stringify(kept), "killed")
      assert.include(JSON.stringify(kept), "newer")
    })
  )
})

const broker = WatchedBroker.layer.pipe(Layer.provide(BrokerMemory.layer()))

describeWith(broker, { excludeTestServices: true })("The connection to the broker", (it) => {
  it.effect("is known with the time since when it is there", () =>
    Effect.gen(function* () {
      const state = yield* eventually(
        Effect.flatten(WatchedBroker.WatchedBroker),
        Option.exists(({ up }) => up)
      )
      assert.strictEqual(Option.map(state, ({ name }) => name).pipe(Option.getOrNull), "broker")
      assert.deepStrictEqual(yield* Effect.flatten(WatchedBroker.WatchedBroker), state)
    })
  )
})
