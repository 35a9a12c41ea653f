import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import { BrokerClient } from "../../src/messaging/BrokerClient.ts"
import type * as Handler from "../../src/messaging/Handler.ts"
import { RetryPolicy } from "../../src/messaging/RetryPolicy.ts"
import { LifecycleStatusConfig, RetryStatusConfig } from "../../src/messaging/StatusSettings.ts"
import * as TaskConsumer from "../../src/messaging/TaskConsumer.ts"
import { Broker } from "../../src/services/Broker.ts"
import { letters } from "./Letters.ts"
import { shared } from "./SampleTopologies.ts"

/**
 * Where the worker's connection breaks: at its n-th publish or settlement, just before the broker gets it, or when the
 * broker has carried it out and before its answer arrives. The worker's handlers and publishes end there, as at its death.
 */
interface Break {
  readonly at: number
  readonly when: "before" | "after"
}

const worker = "worker"

/** The worker's connection, which counts what it asks of the broker and breaks once. */
const breaking = (where: Break | undefined) => {
  const counted = { operations: 0, unknown: 0, redelivered: 0 }
  const layer = Layer.effect(
    Broker,
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const broker = yield* server.connect({ name: worker })
      const breakNow = () => Effect.runSync(server.drop(worker))
      const isHere = () => ++counted.operations === where?.at
      return Broker.of({
        ...broker,
        publish: (publication) =>
          Effect.gen(function* () {
            const here = isHere()
            if (here && where?.when === "before") breakNow()
            const publishing = yield* Effect.forkChild(broker.publish(publication), { startImmediately: true })
            if (here && where?.when === "after") breakNow()
            const outcome = yield* Fiber.join(publishing)
            if (outcome._tag === "Unknown") counted.unknown++
            return outcome
          }),
        consume: (options) =>
          broker.consume({
            ...options,
            onDelivery: (delivery) => {
              if (delivery.redelivered) counted.redelivered++
              options.onDelivery({
                ...delivery,
                settle: (how) => {
                  const here = isHere()
                  if (here && where?.when === "before") breakNow()
                  const settled = delivery.settle(how)
                  if (here && where?.when === "after") breakNow()
                  return settled
                }
              })
            }
          })
      })
    })
  )
  return { counted, layer }
}

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

/** Runs a scenario to its end, and gives back what became of its tasks. */
const play = Effect.fnUntraced(function* (scenario: Scenario, where: Break | undefined) {
  const topology = shared()
  const { counted, layer } = breaking(where)
  const handled: Array<string> = []
  const runs: Array<string> = []
  const handler: Handler.TaskHandler = {
    handle: (task, context) => {
      runs.push(`${task.task_id} ${context.manualRetryCount} ${context.retryAttempt}`)
      return Effect.tap(scenario.handle(task, context), () => Effect.sync(() => handled.push(task.task_id)))
    }
  }
  const publishing = Effect.gen(function* () {
    const client = yield* BrokerClient
    yield* client.initialize
    if (scenario.batch === true) yield* client.publishTasks(scenario.tasks, { mode: "batch_envelope", batchId: "b1" })
    else yield* Effect.forEach(scenario.tasks, (task) => client.publishTask(task))
  })
  return yield* Effect.gen(function* () {
    const producer = BrokerClient.layer({ topology }).pipe(Layer.provide(BrokerMemory.layerConnection()))
    yield* Effect.provide(publishing, producer)
    const consumer = yield* TaskConsumer.make({
      handler,
      retryPolicy: new RetryPolicy({ max_retries: 1 }),
      lifecycleStatuses: new LifecycleStatusConfig({ enabled: true }),
      retryStatuses: new RetryStatusConfig({ enabled: true })
    })
    const running = yield* Effect.forkChild(consumer.run)
    yield* TestClock.adjust("5 minutes")
    yield* consumer.stop
    yield* Fiber.await(running)
    const broker = yield* Broker
    const left = Option.getOrThrow(yield* broker.inspect("tasks.queue")).messages
    const dead = (yield* letters("tasks.queue.dlq")).map(({ body }) => String(Object(body).task_id))
    const said = (yield* letters("status.queue")).map(({ body }) => `${Object(body).task_id} ${Object(body).status}`)
    return { counted, dead, handled, left, runs, said }
  }).pipe(
    Effect.provide(BrokerClient.layer({ topology }).pipe(Layer.provideMerge(layer))),
    Effect.provide(BrokerMemory.layerServer())
  )
})

describe("a crash at every point between the end of a handler and the acknowledgement", () => {
  it.effect.each(scenarios)("$name: nothing is lost, and only what was in doubt happens twice", (scenario) =>
    Effect.gen(function* () {
      const whole = yield* play(scenario, undefined)
      const { operations } = whole.counted
      assert.isAtLeast(operations, 3 * scenario.tasks.length)
      for (let at = 1; at <= operations; at++) {
        for (const when of ["before", "after"] as const) {
          const { counted, dead, handled, left, runs, said } = yield* play(scenario, { at, when })
          const where = `broken ${when} operation ${at} of ${operations}`
          const ended = scenario.ends === "handled" ? handled : dead
          assert.strictEqual(left, 0, where)
          for (const { task_id } of scenario.tasks) {
            assert.include(ended, task_id, where)
            // whoever waits for the task hears of its end
            assert.include(said, `${task_id} ${scenario.ends === "handled" ? "completed" : "failed"}`, where)
          }
          const extra = runs.length - whole.runs.length
          if (extra > 0) assert.isAbove(counted.redelivered + counted.unknown, 0, where)
          // one break brings back one delivery of each task at most, and what follows from it
          assert.isAtMost(extra, 2 * scenario.tasks.length, where)
        }
      }
    }).pipe(Effect.scoped)
  )
})
