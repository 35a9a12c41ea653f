import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { SqlError } from "effect/sql"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as StatusRuntime from "../../../src/graph/StatusRuntime.ts"
import type { StatusInput } from "../../../src/messaging/envelope/StatusEvent.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import type { Broker } from "../../../src/services/Broker.ts"
import { Database } from "../../../src/services/Database.ts"
import { Redis } from "../../../src/services/Redis.ts"
import * as StatusRoutes from "../../../src/status/http/StatusRoutes.ts"
import * as TaskRoutes from "../../../src/status/http/TaskRoutes.ts"
import { StatusStore } from "../../../src/status/store/StatusStore.ts"
import { eventually } from "../../Eventually.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as RunningBroker from "../../RunningBroker.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"
import * as TemporaryNames from "../../TemporaryNames.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import type { JsonAnswer } from "../JsonAnswer.ts"
import * as OperatedTasks from "../queues/OperatedTasks.ts"

const memory = Layer.mergeAll(
  RedisMemory.layer({ prefix: "svc-test:" }),
  BrokerMemory.layerConnection().pipe(Layer.provideMerge(BrokerMemory.layerServer()))
)
const servers = Layer.mergeAll(TemporaryPrefix.layer, RunningBroker.layer())
const isReal = TemporaryPrefix.server !== null && RunningBroker.server !== null && TemporaryDatabase.server !== null

const variants = [
  { name: "a stream, in memory", skip: false, streams: true, doors: memory },
  { name: "a queue, in memory", skip: false, streams: false, doors: memory },
  { name: "a stream, Redis and RabbitMQ", skip: !isReal, streams: true, doors: servers },
  { name: "a queue, Redis and RabbitMQ", skip: !isReal, streams: false, doors: servers }
]

const names = (streams: boolean) =>
  Effect.map(TemporaryNames.TemporaryNames, (given): OperatedTasks.Names => {
    for (const suffix of [".dlq", `.retry.${OperatedTasks.retryDelayMs}ms.quorum`]) given.queue(`work${suffix}`)
    return {
      queue: given.queue("work"),
      tasksExchange: given.exchange("tasks"),
      statusExchange: given.exchange("status"),
      statusQueue: given.queue("status"),
      streams
    }
  })

/** A status server; the result ends it. */
const serve = Effect.fnUntraced(function* (
  given: OperatedTasks.Names,
  database?: Database["Service"],
  backfillPause = 0
) {
  const routes = HttpRouter.serve(Layer.merge(TaskRoutes.layer(), StatusRoutes.layer()), {
    routerConfig: StatusRoutes.routerConfig,
    disableLogger: true,
    disableListenLog: true
  })
  const own = yield* Scope.fork(yield* Effect.scope)
  const runtime = StatusRuntime.layer({
    topology: OperatedTasks.topologyOf(given),
    taskIndex: { attributes: ["book", "chapter"], backfillPause }
  })
  const context = yield* Layer.buildWithScope(
    routes.pipe(
      Layer.provideMerge(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 })),
      Layer.provideMerge(runtime),
      Layer.provide(database === undefined ? Layer.empty : Layer.succeed(Database, database))
    ),
    own
  )
  const { address } = Context.get(context, HttpServer.HttpServer)
  const url = `http://127.0.0.1:${"port" in address ? address.port : 0}`
  const get = (path: string) =>
    Effect.promise(async (): Promise<JsonAnswer> => {
      const answer = await fetch(url + path)
      return { status: answer.status, body: await answer.json() }
    })
  const client = Context.get(context, BrokerClient)
  yield* client.initialize
  const ids = (query: string) =>
    Effect.map(
      get(`/tasks?${query}`),
      ({ body }): ReadonlyArray<string> =>
        (body.tasks ?? []).map(({ task_id }: { readonly task_id: string }) => task_id)
    )
  return {
    get,
    ids,
    say: (status: StatusInput) => client.publishStatus(status),
    store: Context.get(context, StatusStore),
    close: Scope.close(own, Exit.void)
  }
})

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString().replace("Z", "000Z")

for (const { doors, name, skip, streams } of variants) {
  const live = (
    title: string,
    test: () => Effect.Effect<void, unknown, Broker | Redis | TemporaryNames.TemporaryNames | Scope.Scope>
  ) =>
    it.live(
      title,
      () => test().pipe(Effect.scoped, Effect.provide(Layer.provideMerge(TemporaryNames.layer, doors))),
      60_000
    )

  describe.skipIf(skip)(`GET /tasks over ${name}`, () => {
    live("finds tasks by what their statuses and workers say", () =>
      Effect.gen(function* () {
        const given = yield* names(streams)
        const { get, ids, say } = yield* serve(given)
        const notes: Array<string> = []
        yield* Layer.build(OperatedTasks.worker(given, { note: (entry) => notes.push(entry) }))
        yield* Effect.scoped(
          Effect.gen(function* () {
            const client = yield* Layer.build(BrokerClient.layer({ topology: OperatedTasks.topologyOf(given) }))
            const publish = Context.get(client, BrokerClient).publishTask
            yield* publish({ task_id: "good", task_type: "read", payload: {} })
            yield* publish({ task_id: "again", task_type: "write", payload: { fail: 1 } })
          })
        )
        yield* say({
          task_id: "page",
          status: "done",
          meta: { parent_task_id: "book", book: 42, chapter: "one", other: "x" }
        })
        yield* eventually(ids("status=completed"), (found) => found.length === 2)
        yield* eventually(ids("parent=book"), (found) => found.length === 1)
        assert.deepStrictEqual(yield* ids("ended=false"), ["page"])
        assert.deepStrictEqual((yield* ids("ended=true")).toSorted(), ["again", "good"])
        const { body } = yield* get("/tasks?q=again")
        assert.deepStrictEqual(yield* ids("q=again&status=failed"), [])
        const [task] = body.tasks
        assert.deepInclude(task, {
          task_id: "again",
          task_type: "write",
          status: "completed",
          attempt: 1,
          error_class: null,
          queue: given.queue
        })
        assert.include(task.worker, String(process.pid))
        assert.isAtLeast(task.duration_ms, OperatedTasks.retryDelayMs - 500)
        assert.deepStrictEqual(yield* ids("attr.book=42"), ["page"])
        assert.deepStrictEqual(yield* ids("attr.book=42&attr.chapter=two"), [])
        assert.deepStrictEqual((yield* get("/tasks?q=page")).body.tasks[0].attributes, { book: "42", chapter: "one" })
        const counts = yield* get("/tasks/counts?type=read")
        assert.deepStrictEqual(counts.body.counts, [{ status: "completed", count: 1, at_least: false }])
        assert.deepInclude(counts.body.looked, { complete: true, sentence: "Looked at all tasks of the index." })
        assert.deepInclude(counts.body.index, { store: "redis", tasks_at_most: 100_000, failure: null })
      })
    )

    live("pages, and refuses what it cannot answer with the way out", () =>
      Effect.gen(function* () {
        const { get, ids, say } = yield* serve(yield* names(streams))
        for (let n = 0; n < 7; n++) {
          yield* say({
            task_id: `t${n}`,
            status: n === 6 ? "failed" : "done",
            timestamp: minutesAgo(70 - n * 10),
            meta: {}
          })
        }
        yield* eventually(ids(""), (found) => found.length === 7)
        const found: Array<string> = []
        let cursor = ""
        do {
          const { body } = yield* get(`/tasks?limit=2&status=done${cursor === "" ? "" : `&cursor=${cursor}`}`)
          found.push(...body.tasks.map(({ task_id }: { readonly task_id: string }) => task_id))
          cursor = body.next_cursor ?? ""
        } while (cursor !== "")
        assert.deepStrictEqual(found, ["t5", "t4", "t3", "t2", "t1", "t0"])
        assert.deepStrictEqual(yield* ids("since=25m"), ["t6", "t5"])
        assert.deepStrictEqual(yield* ids("until=55m"), ["t1", "t0"])
        const first = yield* get("/tasks?limit=2&status=done")
        const problem = (path: string) =>
          Effect.map(get(path), ({ body, status }) => [status, body.detail[0].loc[1], body.detail[0].msg])
        const other = yield* problem(`/tasks?limit=2&status=failed&cursor=${first.body.next_cursor}`)
        assert.deepStrictEqual(other.slice(0, 2), [422, "cursor"])
        assert.include(other[2], "another filter")
        assert.deepStrictEqual((yield* problem("/tasks?cursor=x")).slice(0, 2), [422, "cursor"])
        assert.deepStrictEqual((yield* problem("/tasks?since=1h&until=2h")).slice(0, 2), [422, "until"])
        assert.deepStrictEqual((yield* problem("/tasks?since=yesterday")).slice(0, 2), [422, "since"])
        assert.deepStrictEqual((yield* problem("/tasks?ended=maybe")).slice(0, 2), [422, "ended"])
        assert.deepStrictEqual((yield* problem("/tasks?limit=201")).slice(0, 2), [422, "limit"])
        assert.include((yield* problem("/tasks?attr.pages=1"))[2], "attr.book, attr.chapter")
        assert.deepStrictEqual((yield* problem("/tasks?colour=red")).slice(0, 2), [422, "colour"])
        assert.deepStrictEqual((yield* problem("/tasks/counts?limit=1")).slice(0, 2), [422, "limit"])
        assert.deepStrictEqual((yield* problem("/tasks?q=%00")).slice(0, 2), [422, "q"])
      })
    )

    live("has the statuses that were stored before it came, also after it was stopped meanwhile", () =>
      Effect.gen(function* () {
        const given = yield* names(streams)
        const first = yield* serve(given, undefined, 60_000)
        for (let n = 0; n < 1_200; n++) {
          yield* first.store.store({
            task_id: `old{${n}%`,
            status: "done",
            timestamp: minutesAgo(5),
            meta: { book: n },
            correlation_id: "c",
            event_id: `e${n}`,
            spec_version: "1.0"
          })
        }
        yield* first.close
        const redis = yield* Redis
        // The first run has begun, as if it had been stopped after its first page.
        yield* redis.command("DEL", redis.key("svc:{tasks}:progress"))
        const second = yield* serve(given, undefined, 60_000)
        yield* eventually(
          redis.command("HGET", redis.key("svc:{tasks}:progress"), "statuses:svc"),
          (at) => at !== null && at !== "done"
        )
        yield* second.close
        const third = yield* serve(given)
        yield* eventually(third.get("/tasks/counts"), ({ body }) => body.counts[0]?.count === 1_200)
        assert.isTrue(
          (yield* eventually(third.get("/tasks"), ({ body }) => body.index.backfilled)).body.index.caught_up
        )
        assert.deepStrictEqual(yield* third.ids("attr.book=77"), ["old{77%"])
      })
    )
  })

  describe.skipIf(skip || TemporaryDatabase.server === null)(`an index in PostgreSQL over ${name}`, () => {
    live("that fails delays no status, says so, and catches up afterwards", () =>
      Effect.gen(function* () {
        const context = yield* Layer.build(MigratedDatabase.of(TemporaryDatabase.layer))
        const real = Context.get(context, Database)
        let isDown = false
        const gone = new SqlError.SqlError({
          reason: new SqlError.UnknownError({ cause: new Error("the database is gone") })
        })
        const database = Database.of({
          ...real,
          transaction: (work) => Effect.suspend(() => (isDown ? Effect.fail(gone) : real.transaction(work)))
        })
        const given = yield* names(streams)
        const { get, ids, say } = yield* serve(given, database)
        yield* say({ task_id: "before", status: "done" })
        yield* eventually(ids(""), (found) => found.length === 1)
        isDown = true
        const count = 3_000
        yield* Effect.forEach(
          Array.from({ length: count }, (_, n) => n),
          (n) => say({ task_id: `t${n}`, status: "done" }),
          { concurrency: 200, discard: true }
        )
        yield* Effect.forEach([0, 1_500, count - 1], (n) =>
          eventually(get(`/status/t${n}`), ({ status }) => status === 200)
        )
        const behind = yield* eventually(get("/tasks"), ({ body }) => body.index.failure !== null)
        assert.deepInclude(behind.body.index, { store: "postgresql", caught_up: false })
        assert.lengthOf(behind.body.tasks, 1)
        isDown = false
        const all = yield* eventually(get("/tasks/counts"), ({ body }) => body.counts[0]?.count === count + 1)
        assert.strictEqual(all.body.index.failure, null)
      })
    )
  })
}

describe("the index of tasks", () => {
  it.effect("refuses more than 8 attributes", () =>
    Effect.gen(function* () {
      const attributes = Array.from({ length: 9 }, (_, n) => `a${n}`)
      const topology = OperatedTasks.topologyOf({
        queue: "q",
        tasksExchange: "t",
        statusExchange: "s",
        statusQueue: "sq"
      })
      const error = yield* Effect.flip(Layer.build(StatusRuntime.layer({ topology, taskIndex: { attributes } })))
      assert.strictEqual("mistakes" in error ? error.mistakes[0]?.field : undefined, "attributes")
    }).pipe(Effect.scoped, Effect.provide(memory))
  )
})
