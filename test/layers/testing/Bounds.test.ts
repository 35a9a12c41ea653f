import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Random, Schema } from "effect"
import { HandlerCheck, step } from "../../../layers/testing/index.ts"
import { Broker, BrokerClient, Handler, RetryPolicy, TaskConsumer } from "../../../src/messaging/index.ts"
import { logged } from "../../messaging/Logged.ts"
import { correct, selling, topology } from "./Orders.ts"

const retryPolicy = new RetryPolicy({ max_retries: 1, delay_ms: 1_000 })

/** A check of a handler that needs nothing, with one task. */
const single = (
  handle: Handler.TaskHandler["handle"],
  invariant: HandlerCheck.Check["invariant"] = () => Effect.void
) =>
  HandlerCheck.make({
    name: "single",
    topology,
    world: Layer.empty,
    worker: TaskConsumer.layer({ retryPolicy, handler: Handler.make(handle) }),
    tasks: [{ task_id: "a" }],
    invariant
  })

const noDeadLetters: HandlerCheck.Check["invariant"] = ({ deadLetters }) =>
  Effect.sync(() =>
    assert.deepStrictEqual(
      deadLetters.map(({ taskId }) => taskId),
      []
    )
  )

describe("combinations", () => {
  const looking = single(
    () => Effect.andThen(step("look", Effect.void), step("look again", Effect.void)),
    noDeadLetters
  )

  it.effect("are found where no single fault fails, and shortened to the earliest ones", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(HandlerCheck.run(looking))
      // one failure is retried, a second one makes a dead letter
      assert.deepStrictEqual(
        failed.schedule.faults.map(({ what }) => what.replace(/ .*/, "")),
        ["fail", "fail"]
      )
      assert.deepStrictEqual(
        failed.schedule.faults.map(({ at }) => at),
        [2, 6]
      )
      assert.isAbove(failed.runs.search, 2 + 26)
      assert.lengthOf(failed.sentences, 2)
    })
  )

  it.effect("are the same ones for the same seed", () =>
    Effect.gen(function* () {
      const brief = { ...looking, faults: ["crash after", "fail before", "fail after"] as const }
      const one = yield* Effect.flip(HandlerCheck.run(brief))
      const same = yield* Effect.flip(HandlerCheck.run(brief))
      assert.deepStrictEqual([same.message, same.runs], [one.message, one.runs])
      const effort = yield* Effect.forEach([2, 3], (seed) =>
        Effect.map(Effect.flip(HandlerCheck.run({ ...brief, seed })), ({ runs }) => runs.search)
      )
      assert.notDeepEqual(effort, [one.runs.search, one.runs.search])
    })
  )

  it.effect("are left out with maxFaults: 1", () =>
    Effect.gen(function* () {
      const report = yield* HandlerCheck.run({ ...looking, maxFaults: 1 })
      assert.deepStrictEqual(report, {
        ...{ seed: 1, runs: 28, operations: 4, combined: 0 },
        single: { possible: 26, ran: 26 }
      })
    })
  )
})

describe("the seed", () => {
  it.effect("decides the random numbers of the worker", () =>
    Effect.gen(function* () {
      const drawn: Array<number> = []
      const drawing = single(() => Effect.map(Random.next, (number) => drawn.push(number)))
      for (const seed of [1, 1, 2]) yield* HandlerCheck.replay(drawing, { seed, faults: [] })
      assert.strictEqual(drawn[0], drawn[1])
      assert.notStrictEqual(drawn[0], drawn[2])
    })
  )
})

describe("bounds", () => {
  it.effect("of runs: the report says how many single faults ran, and a warning that some are left out", () =>
    Effect.gen(function* () {
      const log = logged()
      const few = HandlerCheck.run({ ...selling("orders", correct), maxRuns: 20 })
      const report = yield* Effect.provide(few, log.layer)
      assert.deepStrictEqual(log.lines(), [
        "orders: only 18 of 68 single faults ran, because maxRuns is 20. Set it to 70 or more"
      ])
      assert.deepStrictEqual([report.runs, report.single, report.combined], [20, { possible: 68, ran: 18 }, 0])
    })
  )

  it.effect("of kinds: only these happen", () =>
    Effect.gen(function* () {
      const report = yield* HandlerCheck.run({ ...selling("orders", correct), maxFaults: 1, faults: ["duplicate"] })
      assert.deepStrictEqual([report.runs, report.single], [4, { possible: 2, ran: 2 }])
    })
  )

  it.effect("of time: the error names the step that does not return", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(HandlerCheck.run(single(() => step("wait for godot", Effect.never))))
      assert.deepStrictEqual([failed.reason, failed.schedule.faults], ["unsettled", []])
      assert.deepStrictEqual(failed.said.split("\n"), [
        "the step “wait for godot” (operation 2): the worker waits for its result",
        "the delivery of task a (operation 1): the worker has not settled it"
      ])
      assert.include(failed.message, "single: the worker does not settle without any fault.\n\nWhat still waits at")
    })
  )

  it.effect("of time: the error names the queue with messages that the worker does not take", () =>
    Effect.gen(function* () {
      const queue = topology.tasks.queue
      const worker = Layer.effectDiscard(
        Effect.flatMap(Broker, ({ consume }) => consume({ queue, prefetch: 1, onDelivery: () => {} }))
      )
      const tasks = Effect.flatMap(BrokerClient, ({ publishTasks }) =>
        publishTasks([{ task_id: "a" }, { task_id: "b" }, { task_id: "c" }])
      )
      const idle = HandlerCheck.make({ ...single(() => Effect.void), worker, tasks, deadline: "1 minute" })
      const failed = yield* Effect.flip(HandlerCheck.run(idle))
      assert.deepStrictEqual(failed.said.split("\n"), [
        "the delivery of task a (operation 1): the worker has not settled it",
        "2 messages in the queue orders.work"
      ])
    })
  )

  it.effect("of operations: a worker that is busy without end has not settled", () =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(HandlerCheck.run(single(() => Effect.forever(step("spin", Effect.yieldNow)))))
      assert.strictEqual(failed.said, "the worker: it has performed 5000 operations and goes on")
      assert.include(failed.message, "… 4940 more operations …")
    })
  )
})

describe("two runs without faults that differ", () => {
  it.effect("are a failure that names the first difference", () =>
    Effect.gen(function* () {
      let runs = 0
      const counting = single(() => (runs++ === 0 ? Effect.void : step("only later", Effect.void)))
      const failed = yield* Effect.flip(HandlerCheck.run(counting))
      assert.deepStrictEqual([failed.reason, failed.runs.search], ["unrepeatable", 2])
      assert.strictEqual(
        failed.said,
        "Operation 2 of the first run is the acknowledgement of task a. In the second run it is the step “only later”."
      )
    })
  )

  it.effect("are a failure where the world remembers the first one", () =>
    Effect.gen(function* () {
      const done: Array<string> = []
      const remembering = single(
        ({ task_id }) => Effect.sync(() => done.push(task_id)),
        () => Effect.sync(() => assert.lengthOf(done, 1))
      )
      const failed = yield* Effect.flip(HandlerCheck.run(remembering))
      assert.deepStrictEqual(failed.message.split("\n").slice(0, 4), [
        "single: two runs differ without any fault.",
        "",
        "Each run must start anew: make the state of the world in its layer. The difference:",
        "  The first run passed. The second run failed: expected [ 'a', 'a' ] to have a length of 1 but got 2"
      ])
    })
  )
})

it.effect("a world that takes virtual time to start, and a queue that only the worker may use, are no hindrance", () =>
  Effect.gen(function* () {
    const own = Layer.effectDiscard(
      Effect.flatMap(Broker, (broker) =>
        broker.declare({ exchanges: [], queues: [{ name: "own", exclusive: true, durable: false }], bindings: [] })
      )
    )
    const working = single(() => Effect.void)
    yield* HandlerCheck.run({
      ...working,
      world: Layer.effectDiscard(Effect.sleep("1 minute")),
      worker: Layer.merge(own, working.worker),
      invariant: () => Effect.sleep("1 minute"),
      maxFaults: 1
    })
  })
)

describe("what cannot start", () => {
  class Missing extends Schema.TaggedError<Missing>()("Missing", { message: Schema.String }) {}
  const error = Effect.fail(new Missing({ message: "no password" }))
  const missing = Layer.effectDiscard(error)
  const working = single(() => Effect.void)

  const cases = [
    ["The world could not be built: no password", HandlerCheck.run({ ...working, world: missing })],
    ["The layer of the worker failed: no password", HandlerCheck.run({ ...working, worker: missing })],
    ["The tasks could not be published: no password", HandlerCheck.run({ ...working, tasks: error })]
  ] as const

  it.effect.each(cases)("is named: %s", ([said, run]) =>
    Effect.gen(function* () {
      const failed = yield* Effect.flip(run)
      assert.deepStrictEqual([failed.reason, failed.said], ["setup", said])
    })
  )
})
