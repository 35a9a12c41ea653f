import { randomUUID } from "node:crypto"
import { assert, describe, layer as describeWith, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Option, References, Stream } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as RedisIoredis from "../../../layers/RedisIoredis.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { Redis } from "../../../src/services/Redis.ts"
import * as RedisStatusStore from "../../../src/status/store/RedisStatusStore.ts"
import { type HistoryOptions, StatusStore } from "../../../src/status/store/StatusStore.ts"
import { eventually } from "../../Eventually.ts"
import * as LocalPort from "../../LocalPort.ts"
import * as RealTime from "../../RealTime.ts"
import * as RedisProcess from "../../RedisProcess.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import { event } from "../Events.ts"

const memory = RedisMemory.layer({ prefix: "svc-test-memory:" })

const small = { history_maxlen: 3, dedup_maxlen: 5, children_maxlen: 3 }

const task = () => `task-${randomUUID()}`

const suite = <E>(name: string, redis: Layer.Layer<Redis, E>) =>
  describeWith(Layer.provideMerge(RedisStatusStore.layer(small), redis), { excludeTestServices: true })(
    `RedisStatusStore: ${name}`,
    (it) => {
      it.effect("numbers events from 1 in the order of storing, and keeps the newest", () =>
        Effect.gen(function* () {
          const store = yield* StatusStore
          const id = task()
          assert.deepStrictEqual(yield* store.history(id), { events: [], newest: 0, oldest: 0 })
          assert.isUndefined(yield* store.latest(id))
          yield* Effect.forEach(["a", "b", "c", "d"], (one) => store.store(event(id, one, { status: one })))
          const { events, newest, oldest } = yield* store.history(id)
          assert.deepStrictEqual([newest, oldest], [4, 2])
          assert.deepStrictEqual(
            events.map(({ eventId, sequence, status }) => [sequence, eventId, status]),
            [
              [2, "b", "b"],
              [3, "c", "c"],
              [4, "d", "d"]
            ]
          )
          assert.deepStrictEqual(JSON.parse(events[2]?.json ?? ""), event(id, "d", { status: "d" }))
          assert.deepStrictEqual(yield* store.latest(id), events[2])
        })
      )

      it.effect("keeps events apart whose ids differ in half of a surrogate pair", () =>
        Effect.gen(function* () {
          const store = yield* StatusStore
          const id = task()
          const ids = ["half \ud83d", "half \ud83e", "half \ufffd"]
          const stored = yield* Effect.forEach([...ids, ...ids], (one) => store.store(event(id, one)))
          assert.deepStrictEqual(stored, [...Array(3).fill("stored"), ...Array(3).fill("duplicate")])
          assert.deepStrictEqual(
            (yield* store.history(id)).events.map(({ eventId }) => eventId),
            ids
          )
        })
      )

      it.effect("reads behind a sequence, and the newest so many", () =>
        Effect.gen(function* () {
          const store = yield* StatusStore
          const id = task()
          yield* Effect.forEach(["a", "b", "c", "d"], (one) => store.store(event(id, one)))
          const sequences = (options: HistoryOptions) =>
            Effect.map(store.history(id, options), ({ events, newest, oldest }) => [
              events.map(({ sequence }) => sequence),
              newest,
              oldest
            ])
          assert.deepStrictEqual(yield* sequences({ after: 3 }), [[4], 4, 2])
          assert.deepStrictEqual(yield* sequences({ after: 4 }), [[], 4, 2])
          assert.deepStrictEqual(yield* sequences({ after: 99 }), [[], 4, 2])
          assert.deepStrictEqual(yield* sequences({ limit: 2 }), [[3, 4], 4, 2])
          assert.deepStrictEqual(yield* sequences({ after: 2, limit: 1 }), [[4], 4, 2])
          assert.deepStrictEqual(yield* sequences({ limit: 0 }), [[], 4, 2])
          assert.deepStrictEqual(yield* sequences({ limit: -1 }), [[], 4, 2])
          assert.deepStrictEqual(yield* sequences({ after: Number.NaN, limit: 99 }), [[2, 3, 4], 4, 2])
          const atMost = (events: number, bytes: number) => ({ atMost: { events, bytes } })
          assert.deepStrictEqual(yield* sequences(atMost(2, 10_000)), [[2, 3], 4, 2])
          assert.deepStrictEqual(yield* sequences({ after: 2, ...atMost(2, 10_000) }), [[3, 4], 4, 2])
          assert.deepStrictEqual(yield* sequences({ limit: 2, ...atMost(1, 10_000) }), [[3], 4, 2])
          assert.deepStrictEqual(yield* sequences(atMost(9, 1)), [[2, 3], 4, 2])
          assert.deepStrictEqual(yield* sequences(atMost(0, 10_000)), [[], 4, 2])
        })
      )

      it.effect("knows an event again while it remembers its id, also when it is trimmed from the history", () =>
        Effect.gen(function* () {
          const store = yield* StatusStore
          const id = task()
          const long = "x".repeat(10_000)
          const ids = ["a", long, "c", "d", "e"]
          yield* Effect.forEach(ids, (one) => store.store(event(id, one)))
          for (const one of ids) assert.strictEqual(yield* store.store(event(id, one)), "duplicate")
          assert.strictEqual((yield* store.history(id)).newest, 5)
          assert.strictEqual(yield* store.store(event(id, "f")), "stored")
          // one more than is remembered
          assert.strictEqual(yield* store.store(event(id, "a")), "stored")
          assert.strictEqual((yield* store.history(id)).newest, 7)
          assert.strictEqual(yield* store.store(event(task(), "f")), "stored")
        })
      )

      it.effect("keeps tasks apart whose ids hold braces, blanks and what looks like an escape", () =>
        Effect.gen(function* () {
          const store = yield* StatusStore
          const suffix = randomUUID()
          const ids = ["a", "{a}", "a}b", "}a", "{}", "%7Ba%7D", "%", " a ", "ä🚀"].map((id) => id + suffix)
          yield* Effect.forEach(ids, (id) => store.store(event(id, "e", { status: id })))
          for (const id of ids) {
            const { events, newest } = yield* store.history(id)
            assert.deepStrictEqual([newest, events[0]?.status], [1, id])
          }
        })
      )

      it.effect("indexes children in the order of their names, the first so many", () =>
        Effect.gen(function* () {
          const store = yield* StatusStore
          const parent = task()
          const child = (id: string, meta: Readonly<Record<string, unknown>>) =>
            store.store(event(id, randomUUID(), { meta }))
          yield* child("c2", { parent_task_id: parent })
          yield* child("c2", { parent_task_id: parent })
          yield* child("c1", { parent_task_id: parent })
          yield* child("c3", { parent_task_id: " " })
          yield* child(parent, { parent_task_id: parent })
          assert.deepStrictEqual(yield* store.childTaskIds(parent), ["c1", "c2"])
          yield* child("b", { parent_task_id: parent })
          assert.strictEqual(yield* child("a", { parent_task_id: parent }), "stored")
          assert.deepStrictEqual(yield* store.childTaskIds(parent), ["b", "c1", "c2"])
          assert.deepStrictEqual(yield* store.childTaskIds(parent, { limit: 2 }), ["b", "c1"])
          assert.deepStrictEqual(yield* store.childTaskIds(parent, { limit: -1 }), [])
          assert.deepStrictEqual(yield* store.childTaskIds(task()), [])
        })
      )

      it.effect("completes the index of a parent with an event that is known", () =>
        Effect.gen(function* () {
          const store = yield* StatusStore
          const { command, key } = yield* Redis
          const [parent, child] = [task(), task()]
          const shard = event(child, "e", { meta: { parent_task_id: parent } })
          yield* store.store(shard)
          // as if the hub had died between the two
          yield* command("DEL", key(`svc:children:{${parent}}`))
          assert.strictEqual(yield* store.store(shard), "duplicate")
          assert.deepStrictEqual(yield* store.childTaskIds(parent), [child])
        })
      )

      it.effect("tells who listens, each event once, and not of duplicates", () =>
        Effect.scoped(
          Effect.gen(function* () {
            const store = yield* StatusStore
            const { command, key } = yield* Redis
            const id = task()
            yield* store.store(event(id, "before"))
            const live = yield* store.live(id)
            yield* store.store(event(id, "a"))
            yield* store.store(event(id, "a"))
            yield* command("PUBLISH", key(`svc:live:{${id}}`), "not ours")
            yield* store.store(event(id, "b"))
            const [first, foreign, last] = yield* Stream.runCollect(Stream.take(live, 3))
            assert.deepStrictEqual(foreign, Option.none())
            const heard = [first, last].map((event) => Option.getOrThrow(event ?? Option.none()))
            assert.deepStrictEqual(
              heard.map(({ eventId, sequence }) => [sequence, eventId]),
              [
                [2, "a"],
                [3, "b"]
              ]
            )
            assert.deepStrictEqual(heard[1], yield* store.latest(id))
          })
        )
      )

      it.effect("refreshes the lifetime of a task with each event, and of the index with each child's", () =>
        Effect.gen(function* () {
          const store = yield* StatusStore
          const { command, key } = yield* Redis
          const [parent, id] = [task(), task()]
          const keys = [`history:{${id}}`, `ids:{${id}}`, `children:{${parent}}`].map((name) => key(`svc:${name}`))
          for (const n of ["a", "b"]) {
            yield* store.store(event(id, n, { meta: { parent_task_id: parent } }))
            for (const name of keys) {
              assert.isAbove(Number(yield* command("TTL", name)), 86_000)
              yield* command("EXPIRE", name, 50)
            }
          }
        })
      )

      it.effect("begins again when the ids are gone, whatever is left of the history", () =>
        Effect.gen(function* () {
          const store = yield* StatusStore
          const { command, key } = yield* Redis
          const id = task()
          yield* Effect.forEach(["a", "b"], (one) => store.store(event(id, one)))
          yield* command("DEL", key(`svc:ids:{${id}}`))
          yield* store.store(event(id, "c"))
          const { events, newest, oldest } = yield* store.history(id)
          assert.deepStrictEqual([events.map(({ eventId }) => eventId), newest, oldest], [["c"], 1, 1])
        })
      )

      it.effect("keeps for ever where it is told so", () =>
        Effect.gen(function* () {
          const { command, key } = yield* Redis
          for (const ttl_seconds of [null, 0]) {
            const store = yield* RedisStatusStore.make({ prefix: "ever", ttl_seconds })
            const [id, parent] = [task(), task()]
            yield* store.store(event(id, "a", { meta: { parent_task_id: parent } }))
            const names = [`history:{${id}}`, `ids:{${id}}`, `children:{${parent}}`]
            for (const name of names) assert.strictEqual(yield* command("TTL", key(`ever:${name}`)), -1)
          }
        })
      )

      it.effect("is one order for two writers of the same events", () =>
        Effect.gen(function* () {
          const redis = yield* Redis
          const promise = Effect.runPromiseWith(Context.make(Redis, redis))
          const wide = yield* RedisStatusStore.make({ history_maxlen: 100 })
          const writer = fc.shuffledSubarray(Array.from({ length: 20 }, (_, n) => `e${n}`))
          yield* Effect.promise(() =>
            fc.assert(
              fc.asyncProperty(writer, writer, async (one, other) => {
                const id = task()
                const outcomes = await promise(
                  Effect.forEach(
                    [one, other],
                    (ids) => Effect.forEach(ids, (eventId) => wide.store(event(id, eventId))),
                    { concurrency: 2 }
                  )
                )
                const { events } = await promise(wide.history(id))
                const distinct = new Set([...one, ...other])
                assert.deepStrictEqual(new Set(events.map(({ eventId }) => eventId)), distinct)
                assert.deepStrictEqual(
                  events.map(({ sequence }) => sequence),
                  Array.from(distinct, (_, n) => n + 1)
                )
                assert.strictEqual(outcomes.flat().filter((outcome) => outcome === "stored").length, distinct.size)
              }),
              { numRuns: 30 }
            )
          )
        })
      )
    }
  )

suite("memory", memory)

describe("RedisStatusStore", () => {
  it.effect("forgets a task when its time is over, and numbers it from 1 again", () =>
    Effect.gen(function* () {
      const store = yield* RedisStatusStore.make({ ttl_seconds: 60 })
      yield* store.store(event("t", "a", { meta: { parent_task_id: "p" } }))
      yield* TestClock.adjust("59 seconds")
      yield* store.store(event("t", "b", { meta: { parent_task_id: "p" } }))
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual((yield* store.history("t")).newest, 2)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* store.history("t"), { events: [], newest: 0, oldest: 0 })
      assert.deepStrictEqual(yield* store.childTaskIds("p"), [])
      assert.strictEqual(yield* store.store(event("t", "b")), "stored")
      assert.strictEqual((yield* store.latest("t"))?.sequence, 1)
    }).pipe(Effect.provide(memory))
  )

  it.effect("names every parameter that cannot be taken", () =>
    Effect.gen(function* () {
      const refused = RedisStatusStore.make({
        prefix: "a{b",
        ttl_seconds: -1,
        history_maxlen: 100_001,
        dedup_maxlen: 10,
        children_maxlen: 0.5
      })
      const { mistakes, settings } = yield* Effect.flip(refused)
      assert.strictEqual(settings, "RedisStatusStore")
      assert.deepStrictEqual(
        mistakes.map(({ field, problem }) => `${field} ${problem}`),
        [
          "prefix must not contain { or }, which mark the hash slot in a Redis Cluster",
          "ttl_seconds must be an integer from 0 to 315360000",
          "history_maxlen must be an integer from 1 to 100000",
          "children_maxlen must be an integer from 1 to 1000000",
          "dedup_maxlen must be at least history_maxlen, which is 100001"
        ]
      )
      assert.match((yield* Effect.flip(RedisStatusStore.make({ prefix: " " }))).message, /prefix must not be blank/)
    }).pipe(Effect.provide(memory))
  )
})

describe.skipIf(TemporaryPrefix.server === null)("against a server", () => {
  suite("ioredis", TemporaryPrefix.layer)

  it.live("answers the same by Lua and by TypeScript, to any sequence of events and questions", () =>
    Effect.gen(function* () {
      const doors = yield* Effect.forEach([TemporaryPrefix.layer, memory], (redis) =>
        Effect.map(Layer.build(redis), (context) => Context.get(context, Redis))
      )
      const promise = Effect.runPromiseWith(yield* Effect.context<never>())
      let round = 0
      const same = fc.asyncProperty(
        fc.record({
          history_maxlen: fc.integer({ min: 1, max: 4 }),
          more: fc.nat(3),
          children_maxlen: fc.constantFrom(1, 2)
        }),
        fc.array(step, { minLength: 1, maxLength: 30 }),
        async ({ children_maxlen, history_maxlen, more }, steps) => {
          const options = {
            prefix: `r${round++}`,
            history_maxlen,
            dedup_maxlen: history_maxlen + more,
            children_maxlen
          }
          const [lua, typescript] = await promise(Effect.forEach(doors, (redis) => play(redis, options, steps)))
          assert.deepStrictEqual(typescript, lua)
        }
      )
      yield* Effect.promise(() => fc.assert(same, { numRuns: 100 }))
    }).pipe(Effect.scoped)
  )
})

type Step =
  | { readonly _tag: "Store"; readonly task: string; readonly id: string; readonly parent: string | undefined }
  | { readonly _tag: "Read"; readonly task: string; readonly options: HistoryOptions }
  | { readonly _tag: "Evict"; readonly task: string; readonly what: "ids" | "history" }

const tasks = fc.constantFrom("t", "u{", "}")

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      _tag: fc.constant("Store" as const),
      task: tasks,
      id: fc.constantFrom("a", "b", "c", "d", "e", "ä", "🚀"),
      parent: fc.option(tasks, { nil: undefined })
    })
  },
  {
    weight: 3,
    arbitrary: fc.record({
      _tag: fc.constant("Read" as const),
      task: tasks,
      options: fc.record(
        {
          after: fc.nat(8),
          limit: fc.nat(4),
          atMost: fc.record({ events: fc.nat(12), bytes: fc.oneof(fc.nat(2_000), fc.nat(10)) })
        },
        { requiredKeys: ["after"] }
      )
    })
  },
  fc.record({
    _tag: fc.constant("Evict" as const),
    task: tasks,
    what: fc.constantFrom("ids" as const, "history" as const)
  })
)

const play = Effect.fnUntraced(
  function* (redis: Redis["Service"], options: RedisStatusStore.StatusStoreParameters, steps: ReadonlyArray<Step>) {
    const store = yield* Effect.provideService(RedisStatusStore.make(options), Redis, redis)
    return yield* Effect.forEach(steps, (step): Effect.Effect<unknown, unknown> => {
      const { task } = step
      switch (step._tag) {
        case "Store":
          return Effect.all([
            store.store(
              event(task, step.id, step.parent === undefined ? {} : { meta: { parent_task_id: step.parent } })
            ),
            store.history(task),
            step.parent === undefined ? Effect.void : store.childTaskIds(step.parent)
          ])
        case "Read":
          return Effect.all([store.history(task, step.options), store.latest(task)])
        case "Evict":
          return redis.command(
            "DEL",
            redis.key(`${options.prefix}:${step.what}:{${task.replace(/[{}]/g, encodeURIComponent)}}`)
          )
      }
    })
  },
  Effect.provideService(References.MinimumLogLevel, "None")
)

describe.skipIf(!RedisProcess.available)("RedisStatusStore: on servers of its own", () => {
  it.live("is served by a Redis Cluster, whatever task ids hold", () =>
    Effect.gen(function* () {
      // the usual port of a cluster's bus, 10,000 higher, may be another test's
      const bus = yield* LocalPort.free
      const server = yield* RedisProcess.make("--cluster-enabled", "yes", "--cluster-port", String(bus))
      yield* RedisProcess.ask(server.url, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
      yield* eventually(RedisProcess.ask(server.url, "CLUSTER", "INFO"), (info) =>
        /cluster_state:ok/.test(String(info))
      )
      yield* Effect.gen(function* () {
        const store = yield* StatusStore
        const { run } = yield* Redis
        // such a server refuses a script whose keys lie in different slots
        const across = { name: "across", lua: "return 1", step: () => 1, decode: Number }
        assert.match((yield* Effect.flip(run(across, ["a", "b"], []))).message, /CROSSSLOT/)
        const ids = fc.sample(
          fc.string({ unit: fc.constantFrom("{", "}", "%", "a", "é"), minLength: 1, maxLength: 6 }),
          200
        )
        for (const id of new Set([...ids, "{}", "}{", "{{a}}"])) {
          const parent = `${id}}`
          yield* store.store(event(id, "a", { meta: { parent_task_id: parent } }))
          assert.strictEqual((yield* store.history(id)).newest, 1, id)
          assert.include(yield* store.childTaskIds(parent), id)
        }
      }).pipe(Effect.provide(on(server)))
    }).pipe(Effect.scoped)
  )

  it.live("listens to thousands of tasks by one connection, and lets go of every channel", () =>
    Effect.gen(function* () {
      const server = yield* RedisProcess.make()
      yield* Effect.gen(function* () {
        const store = yield* StatusStore
        const ids = Array.from({ length: 5_000 }, (_, n) => `t${n}`)
        const channels = Effect.map(RedisProcess.ask(server.url, "PUBSUB", "CHANNELS"), (all) =>
          Array.isArray(all) ? all.length : -1
        )
        const subscribers = Effect.map(
          RedisProcess.ask(server.url, "CLIENT", "LIST", "TYPE", "PUBSUB"),
          (list) => String(list).split("\n").filter(Boolean).length
        )
        const listening = yield* Effect.forkChild(
          Effect.forEach(
            ids,
            (id) => Effect.scoped(Effect.flatMap(store.live(id), (live) => Stream.runCollect(Stream.take(live, 1)))),
            { concurrency: "unbounded" }
          )
        )
        yield* eventually(channels, (count) => count === ids.length)
        assert.strictEqual(yield* subscribers, 1)
        yield* Effect.forEach(ids, (id) => store.store(event(id, `e-${id}`)), { concurrency: 100 })
        const heard = yield* Fiber.join(listening)
        assert.deepStrictEqual(
          heard.flat().map((event) => Option.getOrThrow(event).eventId),
          ids.map((id) => `e-${id}`)
        )
        yield* eventually(channels, (count) => count === 0)
      }).pipe(Effect.provide(on(server)))
    }).pipe(Effect.scoped)
  )

  it.live("fails a live stream that may have missed something", () =>
    Effect.gen(function* () {
      const server = yield* RedisProcess.make()
      yield* Effect.gen(function* () {
        const store = yield* StatusStore
        const live = yield* store.live("t")
        const ending = yield* Effect.forkChild(Effect.exit(Stream.runDrain(live)))
        yield* server.kill
        assert.isTrue(Exit.isFailure(yield* Fiber.join(ending)))
      }).pipe(Effect.scoped, Effect.provide(on(server)))
    }).pipe(Effect.scoped)
  )
})

const on = (server: { readonly url: RedisIoredis.Options["url"] }) =>
  Layer.provideMerge(
    RedisStatusStore.layer(),
    RealTime.layer(RedisIoredis.layer({ url: server.url, prefix: "svc-test:", deadline: "10 seconds" }))
  )
