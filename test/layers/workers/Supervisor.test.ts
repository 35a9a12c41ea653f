import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"
import { Supervisor } from "../../../layers/workers/Supervisor.ts"
import * as FakeWorkers from "./FakeWorkers.ts"

/** A supervisor of two workers that has started. */
const running = Effect.fnUntraced(function* (options?: FakeWorkers.Options) {
  const { layer, workers } = FakeWorkers.make(options)
  const restarts = yield* Queue.unbounded<void>()
  const context = yield* Layer.build(Layer.provide(Supervisor.layer({ workers: 2, restarts }), layer))
  const supervisor = yield* Effect.provide(Supervisor, context)
  const fiber = yield* Effect.forkChild(supervisor.run)
  yield* settle
  return { ...supervisor, fiber, restart: Queue.offer(restarts, undefined), workers }
})

/** Lets every fiber go as far as it can. */
const settle = TestClock.adjust(0)

const serving = Effect.fnUntraced(function* (options?: FakeWorkers.Options) {
  const supervisor = yield* running(options)
  for (const worker of supervisor.workers) yield* worker.serve
  yield* settle
  return supervisor
})

const numbersOf = (workers: ReadonlyArray<FakeWorkers.FakeWorker>) => workers.map(({ number }) => number)

describe("a supervisor", () => {
  it.effect("starts a worker for each number, and is ready with the first one", () =>
    Effect.gen(function* () {
      const { readiness, workers } = yield* running()
      assert.deepStrictEqual(numbersOf(workers), [1, 2])
      assert.strictEqual((yield* readiness).status, "not_ready")
      yield* workers[1]!.serve
      yield* settle
      assert.deepStrictEqual(yield* readiness, {
        status: "degraded",
        checks: { database: "up", listeners: "open", workers: "1 of 2", worker_1: "starting", worker_2: "ready" }
      })
      yield* workers[0]!.serve
      yield* settle
      assert.strictEqual((yield* readiness).status, "ready")
    })
  )

  it.effect("replaces a worker that crashes again and again after growing delays, of 30 seconds at most", () =>
    Effect.gen(function* () {
      const { readiness, workers } = yield* serving()
      const states: Array<string | undefined> = []
      for (const ms of [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
        const before = workers.length
        yield* workers.at(-1)!.end(1)
        yield* settle
        states.push((yield* readiness).checks[`worker_${workers.at(-1)!.number}`])
        yield* TestClock.adjust(ms - 1)
        assert.lengthOf(workers, before, `within ${ms} ms`)
        yield* TestClock.adjust(1)
        assert.lengthOf(workers, before + 1, `after ${ms} ms`)
        yield* workers.at(-1)!.serve
        yield* settle
      }
      assert.deepStrictEqual(states.slice(0, 3), ["restarting", "restarting", "crash_loop"])
      assert.strictEqual((yield* readiness).status, "ready")
    })
  )

  it.effect("replaces one that ran for a minute at once, and begins with the shortest delay again", () =>
    Effect.gen(function* () {
      const { workers } = yield* serving()
      yield* workers[0]!.end("SIGKILL")
      yield* TestClock.adjust("250 millis")
      yield* workers[2]!.serve
      yield* TestClock.adjust("1 minute")
      yield* workers[2]!.end("SIGKILL")
      yield* settle
      assert.deepStrictEqual(numbersOf(workers), [1, 2, 1, 1])
      yield* workers[3]!.serve
      yield* settle
      yield* workers[3]!.end("SIGKILL")
      yield* TestClock.adjust("250 millis")
      assert.lengthOf(workers, 5)
    })
  )

  it.effect("restarts one worker after another: the next one leaves when its successor serves", () =>
    Effect.gen(function* () {
      const { metrics, restart, workers } = yield* serving({ retire: "10 seconds" })
      yield* restart
      yield* settle
      assert.deepStrictEqual(numbersOf(workers), [1, 2, 1])
      assert.deepStrictEqual(
        workers.map(({ asked }) => asked),
        ["nothing", "nothing", "nothing"]
      )
      yield* workers[2]!.serve
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual(
        workers.map(({ asked }) => asked),
        ["retire", "nothing", "nothing"]
      )
      const labels = [...(yield* metrics).matchAll(/^requests_total\{worker="(.*)"\} 1$/gm)].map(([, label]) => label)
      assert.deepStrictEqual(labels, ["1", "1-retiring", "2"])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(numbersOf(workers), [1, 2, 1, 2])
      yield* workers[3]!.serve
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(
        workers.map(({ isRunning }) => isRunning),
        [false, false, true, true]
      )
      assert.include(yield* metrics, 'svc_worker_restarts_total{worker="2",reason="restart"} 1')
    })
  )

  it.effect("ends a restart whose first new worker fails, and keeps the workers that serve", () =>
    Effect.gen(function* () {
      const { readiness, restart, workers } = yield* serving()
      yield* restart
      yield* settle
      yield* workers[2]!.end(78, "the schema is incompatible")
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(numbersOf(workers), [1, 2, 1])
      assert.deepStrictEqual(
        workers.map(({ isRunning }) => isRunning),
        [true, true, false]
      )
      assert.strictEqual((yield* readiness).status, "ready")
    })
  )

  it.effect("watches the new worker while the old one still retires", () =>
    Effect.gen(function* () {
      const { restart, workers } = yield* serving({ retire: "1 hour" })
      yield* restart
      yield* settle
      yield* workers[2]!.serve
      yield* settle
      assert.strictEqual(workers[0]!.asked, "retire")
      yield* workers[2]!.end("SIGKILL")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(numbersOf(workers), [1, 2, 1, 1])
    })
  )

  it.effect("kills a worker that has been silent for a minute", () =>
    Effect.gen(function* () {
      const { metrics, readiness, workers } = yield* serving()
      workers[0]!.report = undefined
      workers[0]!.page = undefined
      const report = yield* Effect.forkChild(readiness)
      yield* TestClock.adjust("500 millis")
      assert.deepInclude(yield* Fiber.join(report), { status: "degraded" })
      const page = yield* Effect.forkChild(metrics)
      yield* TestClock.adjust("1 second")
      assert.notInclude(yield* Fiber.join(page), 'requests_total{worker="1"}')
      assert.include(yield* Fiber.join(page), "svc_workers_ready 1\n")
      yield* TestClock.adjust("58 seconds")
      assert.strictEqual(workers[0]!.asked, "nothing")
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(workers[0]!.asked, "kill")
      assert.lengthOf(workers, 3)
      assert.include(yield* metrics, 'svc_worker_restarts_total{worker="1",reason="silence"} 1')
    })
  )

  it.effect("kills a worker that hangs at its start, and waits for one that only takes long", () =>
    Effect.gen(function* () {
      const { metrics, restart, workers } = yield* serving()
      yield* restart
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(numbersOf(workers), [1, 2, 1])
      workers[2]!.isAlive = false
      yield* TestClock.adjust("80 seconds")
      assert.strictEqual(workers[2]!.asked, "kill")
      yield* workers[0]!.end(1)
      yield* settle
      assert.deepStrictEqual(numbersOf(workers), [1, 2, 1, 1])
      workers[3]!.isAlive = false
      yield* TestClock.adjust("80 seconds")
      assert.strictEqual(workers[3]!.asked, "kill")
      assert.deepStrictEqual(numbersOf(workers), [1, 2, 1, 1, 1])
      assert.include(yield* metrics, 'svc_worker_restarts_total{worker="1",reason="silence"} 1')
    })
  )

  it.effect("ends as a worker does whose start fails, and drains the others", () =>
    Effect.gen(function* () {
      const { fiber, workers } = yield* running()
      yield* workers[1]!.end(78, "GATEWAY_ADMIN_TOKEN must begin with op_live_.")
      const error = yield* Effect.flip(Fiber.join(fiber))
      assert.deepInclude(error, { code: 78, message: "GATEWAY_ADMIN_TOKEN must begin with op_live_." })
      assert.strictEqual(workers[0]!.asked, "drain")
    })
  )

  it.effect("goes on after a refused start while another worker serves, and ends without one", () =>
    Effect.gen(function* () {
      const { fiber, workers } = yield* serving()
      yield* workers[0]!.end(1)
      yield* TestClock.adjust("250 millis")
      yield* workers[2]!.end(78, "refused")
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(numbersOf(workers), [1, 2, 1, 1])
      yield* workers[1]!.end(1)
      yield* settle
      yield* workers[3]!.end(78, "refused")
      assert.deepInclude(yield* Effect.flip(Fiber.join(fiber)), { code: 78, message: "refused" })
    })
  )

  it.effect("drains all workers at once when it ends", () =>
    Effect.gen(function* () {
      const { fiber, readiness, workers } = yield* serving({ drain: "10 seconds" })
      const ended = yield* Effect.forkChild(Fiber.interrupt(fiber))
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual(
        workers.map(({ asked }) => asked),
        ["drain", "drain"]
      )
      assert.strictEqual((yield* readiness).status, "not_ready")
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(ended)
      assert.lengthOf(workers, 2)
    })
  )
})
