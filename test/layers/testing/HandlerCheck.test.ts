import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HandlerCheck } from "../../../layers/testing/index.ts"
import { BrokerClient, RetryPolicy, WorkflowConsumer, WorkflowHandler } from "../../../src/messaging/index.ts"
import { workflow } from "../../messaging/SampleTopologies.ts"
import { chargesTwice, correct, losesCounts, selling, tellsTooLate } from "./Orders.ts"

const failureOf = <W, WE, E, IE>(check: HandlerCheck.Check<W, WE, E, IE>) => Effect.flip(HandlerCheck.run(check))

describe("a correct handler", () => {
  it.effect("passes with each single fault at each operation, and with combinations", () =>
    Effect.gen(function* () {
      const report = yield* HandlerCheck.run({ ...selling("orders", correct), maxRuns: 150 })
      // for each of two tasks: a delivery, two steps, a publish and an acknowledgement
      assert.strictEqual(report.operations, 10)
      assert.deepStrictEqual(report.single, { possible: 2 * (4 + 2 * 9 + 8 + 4), ran: 68 })
      assert.deepStrictEqual([report.runs, report.combined], [150, 80])
    })
  )

  it.effect("passes where two workers share the queue", () =>
    Effect.gen(function* () {
      const report = yield* HandlerCheck.run({ ...selling("orders", correct), workers: 2, maxFaults: 1 })
      assert.strictEqual(report.single.ran, report.single.possible)
    })
  )
})

describe("a worker of another kind", () => {
  it.effect("is checked by the messages that an effect publishes", () =>
    Effect.gen(function* () {
      const retryPolicy = new RetryPolicy()
      const stage = HandlerCheck.make({
        name: "stage",
        topology: workflow({ status_use_streams: true }),
        world: Layer.empty,
        worker: WorkflowConsumer.layer({
          stage: "outline",
          retryPolicy,
          handler: WorkflowHandler.make((_message, { publishToStage }) => publishToStage("write", { payload: {} }))
        }),
        tasks: Effect.flatMap(BrokerClient, (client) => client.publishToEntry({ task_id: "w1" }, "start")),
        invariant: ({ deadLetters, messagesIn }) =>
          Effect.sync(() => {
            assert.deepStrictEqual(deadLetters, [])
            const waiting = messagesIn("write.queue").map(({ taskId }) => taskId)
            assert.include(waiting, "w1")
          })
      })
      const { operations, runs, single } = yield* HandlerCheck.run({ ...stage, maxFaults: 1 })
      assert.deepStrictEqual([operations, runs, single.ran], [3, 18, 16])
    })
  )
})

describe("a handler with a bug", () => {
  it.effect("that repeats a charge: the shortest schedule is a crash after the charge", () =>
    Effect.gen(function* () {
      const failed = yield* failureOf(selling("orders", chargesTwice))
      assert.deepStrictEqual(failed.schedule, { seed: 1, faults: [{ at: 3, what: "crash after" }] })
      assert.deepStrictEqual(failed.sentences, ["The worker crashes after the step “charge o1” (operation 3)."])
      assert.strictEqual(failed.reason, "invariant")
      assert.strictEqual(failed.said, "charges of o1: expected 2 to equal 1")
      assert.deepInclude(failed.cause, { name: "AssertionError", actual: 2, expected: 1 })
    })
  )

  it.effect("that publishes after the acknowledgement: the shortest schedule is a crash between the two", () =>
    Effect.gen(function* () {
      const failed = yield* failureOf(selling("orders", tellsTooLate))
      assert.deepStrictEqual(failed.sentences, [
        "The worker crashes after the acknowledgement of task o1 (operation 4)."
      ])
      assert.strictEqual(failed.said, "statuses of o1: expected [] to include 'sold'")
    })
  )

  it.effect(
    "that loses a count: the shortest schedule delays the answer of a read until the other task has stored",
    () =>
      Effect.gen(function* () {
        const failed = yield* failureOf(selling("orders", losesCounts))
        assert.deepStrictEqual(failed.sentences, [
          "The result of the step “read the counter” arrives 5s late (operation 4)."
        ])
        assert.strictEqual(failed.said, "the counter: expected 1 to equal 2")
        const steps = failed.operations.filter(({ kind }) => kind === "step").map(({ label }) => label)
        assert.deepStrictEqual(steps.slice(-2), [
          "the step “store the counter for o2”",
          "the step “store the counter for o1”"
        ])
      })
  )
})

describe("the message of a failure", () => {
  it.effect("has the schedule, what the invariant said, the seed, and the code of the same run", () =>
    Effect.gen(function* () {
      const failed = yield* failureOf(selling("orders", tellsTooLate))
      assert.deepStrictEqual(failed.message.split("\n").slice(0, 11), [
        "orders: the invariant fails under this schedule:",
        "  1. The worker crashes after the acknowledgement of task o1 (operation 4).",
        "",
        "The invariant said:",
        "  statuses of o1: expected [] to include 'sold'",
        "",
        `Seed 1. Found in run ${failed.runs.search}. The same run again:`,
        '  HandlerCheck.replay(orders, { seed: 1, faults: [{ at: 4, what: "crash after" }] })',
        "",
        "What happened:",
        "  1. 0 s, the worker: the delivery of task o1"
      ])
      assert.include(failed.message, "  4. 0 s, the worker: the acknowledgement of task o1 — Crash after\n")
    })
  )

  it.effect("has code that fails in the same way", () =>
    Effect.gen(function* () {
      const orders = selling("orders", tellsTooLate)
      const failed = yield* failureOf(orders)
      const again = yield* Effect.flip(
        HandlerCheck.replay(orders, { seed: 1, faults: [{ at: 4, what: "crash after" }] })
      )
      assert.deepStrictEqual(
        [again.said, again.sentences, again.operations],
        [failed.said, failed.sentences, failed.operations]
      )
      assert.strictEqual(again.replay, failed.replay)
      yield* HandlerCheck.replay(selling("orders", correct), failed.schedule)
    })
  )

  it.effect("says so if the run has no such operation", () =>
    Effect.gen(function* () {
      const orders = { ...selling("orders", correct), invariant: () => Effect.die(new Error("never content")) }
      const failed = yield* Effect.flip(HandlerCheck.replay(orders, { seed: 1, faults: [{ at: 99, what: "hang" }] }))
      assert.deepStrictEqual(failed.sentences, ["No operation 99 where “hang” is possible: the fault is a no-op."])
    })
  )

  it.effect("says so if there is no fault", () =>
    Effect.gen(function* () {
      const orders = { ...selling("orders", correct), invariant: () => Effect.fail("never content" as const) }
      const failed = yield* failureOf(orders)
      assert.deepStrictEqual(failed.schedule.faults, [])
      assert.deepStrictEqual(failed.message.split("\n").slice(0, 7), [
        "orders: the invariant fails without any fault.",
        "",
        "The invariant said:",
        "  never content",
        "",
        "Seed 1. Found in run 1. The same run again:",
        "  HandlerCheck.replay(orders, { seed: 1, faults: [] })"
      ])
    })
  )
})

describe("the kit", () => {
  it("needs no test framework", async () => {
    const orders = selling("orders", correct)
    const report = await Effect.runPromise(HandlerCheck.run({ ...orders, maxFaults: 1, faults: ["duplicate"] }))
    assert.strictEqual(report.runs, 4)
    const names = readdirSync("layers/testing", { recursive: true, encoding: "utf8" })
    const files = names
      .filter((name) => name.endsWith(".ts"))
      .map((name) => readFileSync(`layers/testing/${name}`, "utf8"))
    assert.isAbove(files.length, 20)
    assert.deepStrictEqual(
      files.filter((text) => /from "(@effect\/)?vitest/.test(text)),
      []
    )
  })
})
