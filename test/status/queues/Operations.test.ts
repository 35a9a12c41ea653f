import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { hostname, tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import * as StatusRuntime from "../../../src/graph/StatusRuntime.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import type { Broker } from "../../../src/services/Broker.ts"
import { Redis } from "../../../src/services/Redis.ts"
import * as CancellationRoutes from "../../../src/status/http/CancellationRoutes.ts"
import * as QueueRoutes from "../../../src/status/http/QueueRoutes.ts"
import * as StatusRoutes from "../../../src/status/http/StatusRoutes.ts"
import { end } from "../../EndedProcess.ts"
import { eventually } from "../../Eventually.ts"
import * as RunningBroker from "../../RunningBroker.ts"
import * as TemporaryNames from "../../TemporaryNames.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import type { JsonAnswer } from "../JsonAnswer.ts"
import * as OperatedTasks from "./OperatedTasks.ts"

const memory = Layer.mergeAll(
  RedisMemory.layer({ prefix: "svc-test:" }),
  BrokerMemory.layerConnection().pipe(Layer.provideMerge(BrokerMemory.layerServer()))
)
const servers = Layer.mergeAll(TemporaryPrefix.layer, RunningBroker.layer())
const isReal = TemporaryPrefix.server !== null && RunningBroker.server !== null

const variants = [
  { name: "in memory", skip: false, doors: () => Layer.provideMerge(TemporaryNames.layer, memory) },
  { name: "on Redis and RabbitMQ", skip: !isReal, doors: () => Layer.provideMerge(TemporaryNames.layer, servers) }
]

const temporaryNames = Effect.map(TemporaryNames.TemporaryNames, (names): OperatedTasks.Names => {
  const queue = names.queue("work")
  for (const suffix of [".dlq", `.retry.${OperatedTasks.retryDelayMs}ms.quorum`, ".retry.probe"])
    names.queue(`work${suffix}`)
  return {
    queue,
    tasksExchange: names.exchange("tasks"),
    statusExchange: names.exchange("status"),
    statusQueue: names.queue("status")
  }
})

/** A status server with a hub, and what its clients may ask. */
const world = Effect.gen(function* () {
  const names = yield* temporaryNames
  const topology = OperatedTasks.topologyOf(names)
  const routes = HttpRouter.serve(
    Layer.mergeAll(QueueRoutes.layer(), CancellationRoutes.layer(), StatusRoutes.layer()),
    {
      routerConfig: StatusRoutes.routerConfig,
      disableLogger: true,
      disableListenLog: true
    }
  )
  const context = yield* Layer.build(
    routes.pipe(
      Layer.provideMerge(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 })),
      Layer.provideMerge(StatusRuntime.layer({ topology, queueBoard: { sampleEvery: "300 millis" } }))
    )
  )
  const { address } = Context.get(context, HttpServer.HttpServer)
  const url = `http://127.0.0.1:${"port" in address ? address.port : 0}`
  const call = (method: string, path: string, body?: unknown) =>
    Effect.promise(async (): Promise<JsonAnswer> => {
      const answer = await fetch(url + path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
      return { status: answer.status, body: await answer.json() }
    })
  const client = Context.get(context, BrokerClient)
  yield* client.initialize
  const notes: Array<string> = []
  const scope = yield* Effect.scope
  /** Starts a worker; the result ends it. */
  const startWorker = Effect.gen(function* () {
    const own = yield* Scope.fork(scope)
    yield* Layer.buildWithScope(OperatedTasks.worker(names, { note: (entry) => notes.push(entry) }), own)
    return Scope.close(own, Exit.void)
  })
  const queue = encodeURIComponent(names.queue)
  const get = (path: string) => call("GET", path)
  const queueView = Effect.map(get("/queues"), ({ body }) =>
    body.queues.find((view: { readonly queue: string }) => view.queue === names.queue)
  )
  return {
    names,
    call,
    get,
    notes,
    startWorker,
    queueView,
    publish: (task_id: string, payload: Readonly<Record<string, unknown>> = {}) =>
      client.publishTask({ task_id, task_type: "work", payload }),
    say: (task_id: string, status: string) => client.publishStatus({ task_id, task_type: "work", status, meta: {} }),
    pause: (reason = "maintenance", by?: string) =>
      call("POST", `/queues/${queue}/pause`, { reason, ...(by !== undefined && { by }) }),
    resume: call("POST", `/queues/${queue}/resume`),
    cancel: (task: string, reason = "not needed") => call("POST", `/tasks/${task}/cancel`, { reason, by: "ada" }),
    latest: (task: string) => Effect.map(get(`/status/${task}`), ({ body }) => body.event?.status),
    history: (task: string) =>
      Effect.map(get(`/history?task_id=${task}`), ({ body }) =>
        body.events.map(({ status }: { readonly status: string }) => status)
      )
  }
})

const count = (notes: ReadonlyArray<string>, entry: string) => notes.filter((one) => one === entry).length

for (const { doors, name, skip } of variants) {
  const live = (
    title: string,
    test: () => Effect.Effect<void, unknown, Broker | Redis | TemporaryNames.TemporaryNames | Scope.Scope>
  ) => it.live(title, () => test().pipe(Effect.scoped, Effect.provide(doors())), 60_000)

  describe.skipIf(skip)(`operators of tasks, ${name}`, { concurrent: true }, () => {
    live("see how late the hub stores statuses", () =>
      Effect.gen(function* () {
        const { get } = yield* world
        yield* eventually(get("/queues"), ({ body }) => body.hub.lag_ms === 0)
      })
    )

    live("see the workers with their host, version and running tasks, and how long tasks of a type usually take", () =>
      Effect.gen(function* () {
        const { cancel, get, names, publish, startWorker } = yield* world
        const stop = yield* startWorker
        yield* publish("long", { ms: 60_000 })
        const { body } = yield* eventually(get("/workers"), ({ body }) => body.workers[0]?.consumers[0]?.in_work === 1)
        const [worker] = body.workers
        assert.deepInclude(worker, { host: hostname(), pid: process.pid, version: "1.2.3" })
        const [consumer] = worker.consumers
        assert.deepInclude(consumer, { queue: names.queue, concurrency: 4, in_work: 1, paused: false })
        assert.deepInclude(consumer.running[0], { task_id: "long", task_type: "work", attempt: 0 })
        assert.isAtMost(Math.abs(Date.parse(consumer.running[0].started_at) - Date.now()), 30_000)
        assert.isUndefined(consumer.running[0].usual_ms)
        const inWork = (count: number) =>
          eventually(get("/workers"), ({ body }) => body.workers[0]?.consumers[0]?.in_work === count)
        yield* publish("cancelled", { ms: 60_000 })
        yield* inWork(2)
        yield* cancel("cancelled")
        // a task that did not run to its own end says nothing about how long tasks take
        const cancelled = yield* inWork(1)
        assert.isUndefined(cancelled.body.workers[0].consumers[0].running[0].usual_ms)
        yield* publish("short", { ms: 100 })
        const after = yield* eventually(
          get("/workers"),
          ({ body }) => body.workers[0]?.consumers[0]?.running[0]?.usual_ms !== undefined
        )
        const usualMs = after.body.workers[0].consumers[0].running[0].usual_ms
        assert.isAtLeast(usualMs, 90)
        assert.isBelow(usualMs, 30_000)
        yield* Effect.forkChild(stop)
        yield* eventually(get("/workers"), ({ body }) => body.workers.length === 0)
      })
    )

    live("see the connection to the broker, and the topology beside what the broker has", () =>
      Effect.gen(function* () {
        const { get, names } = yield* world
        const { body } = yield* get("/queues")
        assert.deepStrictEqual(body.broker, { state: "connected", detail: "" })
        const isKnown = ({ live }: { readonly live: string }) => live !== "unknown"
        const { body: topology } = yield* eventually(
          get("/topology"),
          ({ body }) => body.exchanges.every(isKnown) && body.queues.every(isKnown)
        )
        const live = (kind: "exchanges" | "queues") =>
          topology[kind].map(({ live, name }: { readonly live: string; readonly name: string }) => [name, live])
        assert.deepStrictEqual(live("exchanges"), [
          [names.tasksExchange, "same"],
          [names.statusExchange, "same"]
        ])
        assert.deepInclude(live("queues"), [names.queue, "same"])
        const [binding] = topology.bindings.filter(({ queue }: { readonly queue: string }) => queue === names.queue)
        assert.deepInclude(binding, { exchange: names.tasksExchange, queue: names.queue })
        assert.deepStrictEqual(topology.stages, [])
      })
    )

    live("see a queue: ready, in work, waiting for retry, dead, consumers, rates and a state", () =>
      Effect.gen(function* () {
        const { publish, queueView, startWorker } = yield* world
        yield* publish("t1")
        const idle = yield* eventually(queueView, (view) => view?.ready === 1 && view.oldest_age !== null)
        assert.deepInclude(idle, { state: "no consumer", ready: 1, consumers: 0, in_work: 0, reporting_consumers: 0 })
        assert.isAtMost(idle.oldest_age.seconds, 60)
        yield* startWorker
        const done = yield* eventually(
          queueView,
          (view) => view?.last_hour.out >= 1 && view.consumers === 1 && view.ready === 0
        )
        assert.strictEqual(done.state, "well")
        yield* publish("retried", { fail: 1 })
        const waiting = yield* eventually(
          queueView,
          (view) => view?.waiting_for_retry === 1 && view.next_retry_at !== null
        )
        assert.isAtMost(Math.abs(Date.parse(waiting.next_retry_at) - Date.now()), 2 * OperatedTasks.retryDelayMs)
        yield* eventually(queueView, (view) => view?.waiting_for_retry === 0)
      })
    )

    live("pause a queue: workers finish what they have, take nothing, and take again after the resume", () =>
      Effect.gen(function* () {
        const { latest, notes, pause, publish, queueView, resume, startWorker } = yield* world
        yield* startWorker
        yield* publish("before", { ms: 4_000 })
        yield* eventually(
          Effect.sync(() => notes),
          (notes) => notes.includes("started before")
        )
        const paused = yield* pause("database maintenance", "ada")
        assert.strictEqual(paused.status, 200)
        assert.deepInclude(paused.body.paused, { reason: "database maintenance", by: "ada" })
        yield* eventually(queueView, (view) => view?.stopped_consumers === 1 && view.consumers === 0, "8 seconds")
        yield* publish("during")
        const view = yield* eventually(queueView, (view) => view?.ready === 1)
        assert.strictEqual(view.state, "paused")
        assert.deepInclude(view.paused, { reason: "database maintenance", by: "ada" })
        // The handler that ran already goes on, while a resume lets the other slots take messages at once.
        assert.strictEqual(view.in_work, 1)
        assert.strictEqual((yield* resume).status, 200)
        yield* eventually(
          Effect.sync(() => notes),
          (notes) => notes.includes("ended during")
        )
        assert.notInclude(notes, "ended before")
        yield* eventually(latest("before"), (status) => status === "completed")
        assert.strictEqual(count(notes, "started before"), 1)
        assert.strictEqual((yield* resume).status, 409)
      })
    )

    live("pause a queue before a worker starts", () =>
      Effect.gen(function* () {
        const { notes, pause, publish, queueView, resume, startWorker } = yield* world
        yield* pause()
        yield* publish("t1")
        yield* startWorker
        yield* eventually(queueView, (view) => view?.stopped_consumers === 1)
        yield* Effect.sleep("1500 millis")
        assert.deepStrictEqual(notes, [])
        yield* resume
        yield* eventually(
          Effect.sync(() => notes),
          (notes) => notes.includes("ended t1")
        )
      })
    )

    live("cancel a running task: the worker interrupts the handler and says so", () =>
      Effect.gen(function* () {
        const { cancel, get, history, latest, notes, publish, queueView, startWorker } = yield* world
        yield* startWorker
        yield* publish("long", { ms: 60_000 })
        yield* eventually(latest("long"), (status) => status === "processing")
        const answer = yield* cancel("long", "wrong book")
        assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
        assert.deepInclude(answer.body, { task_id: "long", state: "cancelled", reason: "wrong book", by: "ada" })
        assert.include(answer.body.worker, hostname())
        yield* eventually(latest("long"), (status) => status === "cancelled")
        const { body } = yield* get("/status/long")
        assert.strictEqual(body.event.message, "Cancelled by ada: wrong book")
        assert.deepInclude(body.event.meta, { cancelled_by: "ada", cancel_reason: "wrong book" })
        yield* eventually(queueView, (view) => view?.in_work === 0 && view.ready === 0 && view.dead === 0)
        assert.strictEqual(count(notes, "started long"), 1)
        assert.notInclude(notes, "ended long")
        assert.deepStrictEqual(yield* history("long"), ["processing", "cancelled"])
        assert.strictEqual((yield* cancel("long")).status, 409)
      })
    )

    live("cancel a task that waits for its retry: it is not run", () =>
      Effect.gen(function* () {
        const { cancel, history, latest, notes, publish, queueView, startWorker } = yield* world
        yield* startWorker
        yield* publish("again", { fail: 1 })
        yield* eventually(latest("again"), (status) => status === "retrying")
        const answer = yield* cancel("again")
        assert.strictEqual(answer.status, 202, JSON.stringify(answer.body))
        assert.strictEqual(answer.body.state, "not_held")
        yield* eventually(latest("again"), (status) => status === "cancelled")
        yield* eventually(queueView, (view) => view?.waiting_for_retry === 0 && view.ready === 0)
        assert.strictEqual(count(notes, "started again"), 1)
        assert.deepStrictEqual(yield* history("again"), ["processing", "retrying", "cancelled"])
      })
    )

    live("cancel a task that waits in its queue, and take a request back", () =>
      Effect.gen(function* () {
        const { call, cancel, get, latest, notes, publish, startWorker } = yield* world
        yield* publish("queued")
        yield* publish("kept")
        for (const task of ["queued", "kept"]) {
          const answer = yield* cancel(task)
          assert.deepStrictEqual([answer.status, answer.body.state], [202, "not_held"])
        }
        assert.strictEqual((yield* get("/tasks/kept/cancel")).body.state, "requested")
        assert.strictEqual((yield* call("POST", "/tasks/kept/cancel/withdraw")).status, 200)
        assert.strictEqual((yield* call("POST", "/tasks/kept/cancel/withdraw")).status, 404)
        // The second worker would miss the requests that it has not read yet only within its first round.
        yield* startWorker
        yield* eventually(latest("queued"), (status) => status === "cancelled")
        yield* eventually(latest("kept"), (status) => status === "completed")
        assert.notInclude(notes, "ended queued")
      })
    )

    live("cancel all that match: what runs, what waits in its queue, and what waits for its retry", () =>
      Effect.gen(function* () {
        const { call, get, latest, notes, publish, say, startWorker } = yield* world
        yield* startWorker
        yield* publish("done")
        yield* publish("again", { fail: 3 })
        yield* eventually(latest("done"), (status) => status === "completed")
        yield* eventually(latest("again"), (status) => status === "retrying")
        // the worker has four places
        for (const task of ["run-1", "run-2", "run-3", "run-4"]) yield* publish(task, { ms: 60_000 })
        yield* eventually(latest("run-4"), (status) => status === "processing")
        for (const task of ["wait-1", "wait-2"]) {
          yield* say(task, "pending")
          yield* publish(task)
        }
        yield* eventually(latest("wait-2"), (status) => status === "pending")
        const begin = call("POST", "/tasks/cancellations", { query: { type: "work" }, reason: "wrong book", by: "ada" })
        const { body: begun } = yield* eventually(begin, ({ body }) => body.total + body.asked_before === 7)
        const { body: job } = yield* eventually(
          get(`/tasks/cancellations/${begun.cancellation_id}`),
          ({ body }) => body.state === "finished",
          "40 seconds"
        )
        assert.deepInclude(job, { reason: "wrong book", by: "ada", requested: 0, failed: 0, remaining: 0, ended: 0 })
        assert.strictEqual(job.cancelled, job.total)
        for (const task of ["run-1", "run-2", "run-3", "run-4", "wait-1", "wait-2", "again"])
          assert.strictEqual(yield* latest(task), "cancelled", task)
        assert.strictEqual(yield* latest("done"), "completed")
        for (const task of ["wait-1", "wait-2"]) assert.strictEqual(count(notes, `started ${task}`), 0)
      })
    )

    live("are told when a handler takes no interruption, and when it succeeded nevertheless", () =>
      Effect.gen(function* () {
        const { cancel, get, latest, publish, startWorker } = yield* world
        yield* startWorker
        yield* publish("stubborn", { ms: 8_000, stubborn: true })
        yield* eventually(latest("stubborn"), (status) => status === "processing")
        const answer = yield* cancel("stubborn")
        assert.deepStrictEqual([answer.status, answer.body.state], [202, "interrupting"])
        yield* eventually(latest("stubborn"), (status) => status === "cancelled" || status === "completed")
        const { body } = yield* get("/tasks/stubborn/cancel")
        assert.include(["cancelled", "ended"], body.state)
      })
    )

    live("are refused with the way out", () =>
      Effect.gen(function* () {
        const { call, cancel, latest, names, publish, startWorker } = yield* world
        const queue = encodeURIComponent(names.queue)
        assert.strictEqual((yield* call("POST", "/queues/nothing/pause", { reason: "x" })).status, 404)
        const without = yield* call("POST", `/queues/${queue}/pause`, {})
        assert.strictEqual(without.status, 422)
        assert.deepStrictEqual(without.body.detail[0].loc, ["body", "reason"])
        const unknown = yield* call("POST", `/queues/${queue}/pause`, { reason: "x", until: "tomorrow" })
        assert.deepStrictEqual([unknown.status, unknown.body.detail[0].loc], [422, ["body", "until"]])
        assert.strictEqual((yield* call("POST", `/queues/${queue}/pause`, { reason: "x".repeat(5_000) })).status, 413)
        assert.strictEqual((yield* call("DELETE", "/queues")).status, 405)
        yield* startWorker
        yield* publish("done")
        yield* eventually(latest("done"), (status) => status === "completed")
        const finished = yield* cancel("done")
        assert.strictEqual(finished.status, 409)
        assert.include(finished.body.detail, "completed")
      })
    )
  })
}

describe.skipIf(!isReal)("a worker that is killed", { concurrent: true }, () => {
  const provided = <A, E>(test: Effect.Effect<A, E, Broker | Redis | TemporaryNames.TemporaryNames | Scope.Scope>) =>
    test.pipe(Effect.scoped, Effect.provide(Layer.provideMerge(TemporaryNames.layer, servers)))

  const processes = Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "svc-test-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const journal = join(folder, "journal")
    writeFileSync(journal, "")
    const redis = yield* Redis
    const start = (names: OperatedTasks.Names, crashAt?: OperatedTasks.CrashPoint, concurrency = 4) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const settings: OperatedTasks.ProcessSettings = {
            names,
            rabbitmq: Redacted.value(RunningBroker.url),
            redis: Redacted.value(TemporaryPrefix.url),
            prefix: redis.key(""),
            journal,
            concurrency,
            ...(crashAt !== undefined && { crashAt })
          }
          const program = new URL("./OperatedWorker.ts", import.meta.url).pathname
          return spawn(process.execPath, [program, JSON.stringify(settings)], {
            stdio: ["ignore", "ignore", "inherit"]
          })
        }),
        (child) => end(child, "SIGKILL")
      )
    return { start, notes: Effect.sync(() => readFileSync(journal, "utf8").split("\n").filter(Boolean)) }
  })

  for (const crashAt of OperatedTasks.crashPoints) {
    it.live(
      `${crashAt} of a cancel: the task is cancelled once, and not run again`,
      () =>
        Effect.gen(function* () {
          const { cancel, history, latest, names, publish, queueView } = yield* world
          const { notes, start } = yield* processes
          const first = yield* start(names, crashAt)
          yield* publish("long", { ms: 600_000 })
          yield* eventually(notes, (notes) => notes.includes("started long"))
          yield* eventually(latest("long"), (status) => status === "processing")
          yield* Effect.forkChild(cancel("long"))
          yield* eventually(
            Effect.sync(() => first.signalCode),
            (signal) => signal === "SIGKILL"
          )
          yield* start(names)
          yield* eventually(latest("long"), (status) => status === "cancelled")
          yield* eventually(
            queueView,
            (view) => view?.ready === 0 && view.in_work === 0 && view.reporting_consumers === 1
          )
          assert.strictEqual(count(yield* notes, "started long"), 1)
          assert.deepStrictEqual(yield* history("long"), ["processing", "cancelled"])
        }).pipe(provided),
      90_000
    )
  }

  it.live(
    "while its queue is paused: nothing is lost, and its successor takes nothing before the resume",
    () =>
      Effect.gen(function* () {
        const { names, pause, publish, queueView, resume } = yield* world
        const { notes, start } = yield* processes
        const first = yield* start(names)
        const tasks = Array.from({ length: 20 }, (_, at) => `t${at}`)
        yield* Effect.forEach(tasks, (task) => publish(task, { ms: 1_500 }), { concurrency: 8 })
        yield* eventually(notes, (notes) => notes.length >= 3)
        yield* pause("kill it")
        yield* Effect.sleep("300 millis")
        yield* end(first, "SIGKILL")
        const before = (yield* notes).filter((note) => note.startsWith("ended")).length
        yield* start(names)
        yield* eventually(queueView, (view) => view?.stopped_consumers >= 1 && view.ready === 20 - before)
        const started = (yield* notes).length
        yield* Effect.sleep("2 seconds")
        assert.lengthOf(yield* notes, started)
        yield* resume
        yield* eventually(notes, (notes) => tasks.every((task) => notes.includes(`ended ${task}`)))
        yield* eventually(queueView, (view) => view?.ready === 0 && view.in_work === 0 && view.dead === 0)
      }).pipe(provided),
    90_000
  )
})
