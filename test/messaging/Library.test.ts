import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { BrokerMemory, RedisMemory } from "../../layers/testing/index.ts"
import { BrokerClient } from "../../src/messaging/index.ts"
import { Broker } from "../../src/services/Broker.ts"
import { end } from "../EndedProcess.ts"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as AggregationExample from "./AggregationExample.ts"
import { listening } from "./StatusStream.ts"
import { settleDown } from "./TaskWorker.ts"
import * as WorkerExample from "./WorkerExample.ts"
import * as WorkflowExample from "./WorkflowExample.ts"

/** The example's names are fixed, also on a broker that others use. */
const ofWorker = {
  queues: ["mail.send", "mail.send.dlq", "mail.send.retry.10000ms.quorum", "mail.status"],
  exchanges: ["mail.tasks", "mail.status"]
}

describe("the guide's examples of messaging", () => {
  it.effect("a worker: takes what it understands, and dead-letters what does not meet its schema", () =>
    Effect.gen(function* () {
      const { inspectQueue, publishTask } = yield* BrokerClient
      yield* settleDown
      const said = yield* listening("mail.status")
      yield* WorkerExample.send("m1", { to: "ada@example.com", text: "hello" })
      yield* publishTask({ task_id: "m2", task_type: "send", payload: { to: 5 } })
      yield* settleDown
      assert.deepStrictEqual(said, [
        { task_id: "m1", status: "sent" },
        { task_id: "m2", status: "failed" }
      ])
      const dead = yield* inspectQueue("mail.send.dlq")
      assert.deepInclude(dead, { value: { messages: 1, consumers: 0 } })
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(WorkerExample.worker, WorkerExample.client).pipe(Layer.provideMerge(BrokerMemory.layer()))
      )
    )
  )

  it.effect("a workflow: from an order through its stages to a status", () =>
    Effect.gen(function* () {
      yield* settleDown
      const said = yield* listening("reports.status")
      yield* WorkflowExample.order("r1", "AMQP")
      yield* settleDown
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(said, [{ task_id: "r1", status: "completed", result: { chapters: 2 } }])
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(WorkflowExample.workers, WorkflowExample.client).pipe(Layer.provideMerge(BrokerMemory.layer()))
      )
    )
  )

  it.effect("aggregation: from the pages of a book to a status of the book", () =>
    Effect.gen(function* () {
      const { publishTasks } = yield* BrokerClient
      yield* settleDown
      const said = yield* listening("books.status")
      const texts = ["It was a bright cold day", "and the clocks", "were striking thirteen"]
      const pages = texts.map((text, n) => ({
        task_id: `book.${n}`,
        task_type: "count",
        payload: { book: "book", pages: texts.length, text }
      }))
      yield* publishTasks(pages, { mode: "batch_envelope", batchId: "book" })
      for (let n = 0; n < 3; n++) yield* settleDown
      assert.deepStrictEqual(
        said.filter(({ task_id }) => task_id === "book"),
        [{ task_id: "book", status: "completed", result: { words: 12 } }]
      )
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(AggregationExample.counters, AggregationExample.client).pipe(
          Layer.provideMerge(Layer.merge(BrokerMemory.layer(), RedisMemory.layer()))
        )
      )
    )
  )

  it.live.skipIf(RunningBroker.server === null)("a program: works until SIGTERM, and exits with 0", () =>
    Effect.gen(function* () {
      const { inspect, remove } = yield* Broker
      yield* Effect.addFinalizer(() => Effect.orDie(remove(ofWorker)))
      const program = fileURLToPath(new URL("./WorkerProgram.ts", import.meta.url))
      const names = new URL("../ResolvePackageNames.ts", import.meta.url).href
      const env = { ...process.env, RABBITMQ_URL: Redacted.value(RunningBroker.url) }
      const child = spawn(process.execPath, ["--import", names, program], {
        env,
        stdio: ["ignore", "ignore", "inherit"]
      })
      yield* Effect.addFinalizer(() => end(child, "SIGKILL"))
      yield* eventually(
        inspect("mail.send"),
        (found) => Option.isSome(found) && found.value.consumers > 0,
        "60 seconds"
      )
      yield* end(child, "SIGTERM")
      assert.strictEqual(child.exitCode, 0)
    }).pipe(Effect.scoped, Effect.provide(RunningBroker.layer()))
  )
})
