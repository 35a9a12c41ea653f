import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import type * as Handler from "../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig, RetryStatusConfig } from "../../src/messaging/topology/StatusSettings.ts"
import { Broker } from "../../src/services/Broker.ts"
import { type Fault, failing, faults } from "./FailingWorker.ts"
import { letters } from "./Letters.ts"
import { shared } from "./SampleTopologies.ts"

type Message = Parameters<BrokerClient["Service"]["publishTask"]>[0] & { readonly task_id: string }

interface Scenario {
  readonly name: string
  readonly tasks: ReadonlyArray<Message>
  readonly batch?: boolean
  /** What a run of the handler does, by the attempt. */
  readonly handle: Handler.TaskHandler["handle"]
  /** How each task has to end. */
  readonly ends: "handled" | "dead"
}

const scenarios: ReadonlyArray<Scenario> = [
  {
    name: "a handler that returns",
    tasks: [{ task_id: "a" }, { task_id: "b" }],
    handle: () => Effect.void,
    ends: "handled"
  },
  {
    name: "a handler that publishes a status of its own",
    tasks: [{ task_id: "a" }],
    handle: (_task, context) => Effect.ignore(context.publishStatus("searching")),
    ends: "handled"
  },
  {
    name: "a handler that fails once, and is retried",
    tasks: [{ task_id: "a" }],
    handle: (_task, { retryAttempt }) => (retryAttempt === 0 ? Effect.fail("once") : Effect.void),
    ends: "handled"
  },
  {
    name: "a handler that fails to the end",
    tasks: [{ task_id: "a" }],
    handle: () => Effect.fail("always"),
    ends: "dead"
  },
  {
    name: "a batch",
    tasks: [{ task_id: "a" }, { task_id: "b" }, { task_id: "c" }],
    batch: true,
    handle: () => Effect.void,
    ends: "handled"
  },
  {
    name: "a hand-over",
    tasks: [{ task_id: "a" }],
    handle: (_task, context) => (context.manualRetryCount === 0 ? context.manualRetry() : Effect.void),
    ends: "handled"
  }
]

/** Runs a scenario to its end, by the worker with its fault and then by a sound one, and gives back what became of it. */
const play = Effect.fnUntraced(function* (scenario: Scenario, fault: Fault | undefined) {
  const topology = shared()
  const { counted, layer } = failing(fault)
  const handled: Array<string> = []
  const runs: Array<string> = []
  const handler: Handler.TaskHandler = {
    handle: (task, context) => {
      runs.push(`${task.task_id} ${context.manualRetryCount} ${context.retryAttempt}`)
      return Effect.tap(scenario.handle(task, context), () => Effect.sync(() => handled.push(task.task_id)))
    }
  }
  const connected = Layer.provideMerge(BrokerClient.layer({ topology }), BrokerMemory.layerConnection())
  const publishing = Effect.gen(function* () {
    const client = yield* BrokerClient
    yield* client.initialize
    if (scenario.batch === true) yield* client.publishTasks(scenario.tasks, { mode: "batch_envelope", batchId: "b1" })
    else yield* Effect.forEach(scenario.tasks, (task) => client.publishTask(task))
  })
  const working = Effect.gen(function* () {
    const consumer = yield* TaskConsumer.make({
      handler,
      observationSink: (observed) => {
        if (observed.event_type === "TaskMessageReceived" && observed.redelivered) counted.doubtful++
      },
      retryPolicy: new RetryPolicy({ max_retries: 1 }),
      lifecycleStatuses: new LifecycleStatusConfig({ enabled: true }),
      retryStatuses: new RetryStatusConfig({ enabled: true })
    })
    yield* Effect.forkChild(consumer.run)
    yield* TestClock.adjust("5 minutes")
    yield* Effect.forkChild(consumer.stop)
    yield* TestClock.adjust("1 minute")
  })
  const looking = Effect.gen(function* () {
    const left = Option.getOrThrow(yield* (yield* Broker).inspect("tasks.queue")).messages
    const dead = (yield* letters("tasks.queue.dlq")).map(({ body }) => String(Object(body).task_id))
    const said = (yield* letters("status.queue")).map(({ body }) => `${Object(body).task_id} ${Object(body).status}`)
    return { counted, dead, handled, left, runs, said }
  })
  return yield* Effect.gen(function* () {
    yield* Effect.provide(publishing, connected)
    yield* Effect.provide(working, Layer.provideMerge(BrokerClient.layer({ topology }), layer))
    yield* Effect.provide(working, connected)
    return yield* Effect.provide(looking, connected)
  }).pipe(Effect.provide(BrokerMemory.layerServer()))
})

describe("a crash at every point between the end of a handler and the acknowledgement", () => {
  it.effect.each(scenarios)("$name: nothing is lost, and only what was in doubt happens twice", (scenario) =>
    Effect.gen(function* () {
      const whole = yield* play(scenario, undefined)
      const { operations } = whole.counted
      assert.isAtLeast(operations, 3 * scenario.tasks.length)
      for (let at = 1; at <= operations; at++) {
        for (const what of faults) {
          const { counted, dead, handled, left, runs, said } = yield* play(scenario, { at, what })
          const where = `${what} at operation ${at} of ${operations}`
          const ended = scenario.ends === "handled" ? handled : dead
          assert.strictEqual(left, 0, where)
          for (const { task_id } of scenario.tasks) {
            assert.include(ended, task_id, where)
            // whoever waits for the task hears of its end
            assert.include(said, `${task_id} ${scenario.ends === "handled" ? "completed" : "failed"}`, where)
          }
          const extra = runs.length - whole.runs.length
          if (extra > 0) assert.isAbove(counted.doubtful, 0, where)
          // one fault brings back one delivery of each task at most, and what follows from it
          assert.isAtMost(extra, 2 * scenario.tasks.length, where)
        }
      }
    }).pipe(Effect.scoped)
  )
})
