import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
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
 * What happens at the n-th publish or settlement of the worker.
 *
 * - `cut before`, `cut after`: its connection breaks just before the broker gets it, or when the broker has carried it out
 *   and before its answer arrives; another one is made at once.
 * - `dead before`, `dead after`: the worker is gone there, with everything that it was doing.
 * - `refused`: the broker does not take the publish. `unanswered`: it takes it, and never says so.
 */
const faults = ["cut before", "cut after", "dead before", "dead after", "refused", "unanswered"] as const

interface Fault {
  readonly at: number
  readonly what: (typeof faults)[number]
}

const worker = "worker"

/** The worker's connection, which counts what it asks of the broker, and has one fault. */
const failing = (fault: Fault | undefined) => {
  /** `doubtful`: publishes of unknown outcome, and deliveries that the broker had given before. */
  const counted = { operations: 0, doubtful: 0 }
  let isDead = false
  const layer = Layer.effect(
    Broker,
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const scope = yield* Scope.make()
      yield* Effect.addFinalizer((exit) => Scope.close(scope, exit))
      const broker = yield* Scope.provide(server.connect({ name: worker }), scope)
      const next = () => (++counted.operations === fault?.at ? fault.what : undefined)
      const happen = (what: Fault["what"] | undefined, when: "before" | "after") => {
        if (what === `cut ${when}`) Effect.runSync(server.drop(worker))
        if (what === `dead ${when}`) {
          isDead = true
          Effect.runFork(Scope.close(scope, Exit.void))
        }
      }
      return Broker.of({
        ...broker,
        publish: (publication) =>
          Effect.gen(function* () {
            if (isDead) return yield* Effect.never
            const what = next()
            happen(what, "before")
            if (isDead) return yield* Effect.never
            if (what === "refused") return { _tag: "Refused" as const, reason: "nacked" as const, detail: "full" }
            const publishing = yield* Effect.forkChild(broker.publish(publication), { startImmediately: true })
            happen(what, "after")
            if (isDead) return yield* Effect.never
            const outcome = yield* Fiber.join(publishing)
            const known =
              what === "unanswered"
                ? { _tag: "Unknown" as const, reason: "deadline" as const, detail: "no answer" }
                : outcome
            if (known._tag === "Unknown") counted.doubtful++
            return known
          }),
        consume: (options) =>
          broker.consume({
            ...options,
            onDelivery: (delivery) => {
              if (isDead) return
              options.onDelivery({
                ...delivery,
                settle: (how) => {
                  if (isDead) return "stale"
                  const what = next()
                  happen(what, "before")
                  const settled = isDead ? "stale" : delivery.settle(how)
                  happen(what, "after")
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
