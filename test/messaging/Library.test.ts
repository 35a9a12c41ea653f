import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import { BrokerClient } from "../../src/messaging/index.ts"
import { listening } from "./StatusStream.ts"
import { settleDown } from "./TaskWorker.ts"
import * as WorkerExample from "./WorkerExample.ts"
import * as WorkflowExample from "./WorkflowExample.ts"

describe("the README's examples of messaging", () => {
  it.effect("a worker: takes what it understands, and dead-letters what does not meet its schema", () =>
    Effect.gen(function* () {
      const { inspectQueue, publishTask } = yield* BrokerClient
      yield* settleDown
      const said = yield* listening("mail.status")
      yield* publishTask({ task_id: "m1", task_type: "send", payload: { to: "ada@example.com", text: "hello" } })
      yield* publishTask({ task_id: "m2", task_type: "send", payload: { to: 5 } })
      yield* settleDown
      assert.deepStrictEqual(said, [{ task_id: "m1", status: "sent" }])
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

  it.each(["./WorkerExample.ts", "./WorkflowExample.ts"])("%s stands in the README as it is here", (file) => {
    const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")
    assert.include(read("../../README.md"), `\`\`\`ts\n${read(file).replaceAll("../../src/", "./src/")}\`\`\``)
  })
})
