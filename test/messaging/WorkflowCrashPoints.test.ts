import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import { StageDedup } from "../../src/messaging/consume/StageDedup.ts"
import * as WorkflowConsumer from "../../src/messaging/consume/WorkflowConsumer.ts"
import * as WorkflowHandler from "../../src/messaging/consume/WorkflowHandler.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import type { StageContract } from "../../src/messaging/topology/Stage.ts"
import { RetryStatusConfig } from "../../src/messaging/topology/StatusSettings.ts"
import { Broker } from "../../src/services/Broker.ts"
import { type Fault, failing, faults } from "./FailingWorker.ts"
import { letters } from "./Letters.ts"
import { by, workflow } from "./SampleTopologies.ts"

const tasks = ["a", "b"]

/** Of two stages: `plan` hands over to `write`, which fails at its first try. */
const play = Effect.fnUntraced(function* (contract: StageContract, fault: Fault | undefined) {
  const topology = workflow({
    stages: [
      { name: "plan", queue: "plan.queue", ...by("planner.plan.in"), max_retries: 1 },
      { name: "write", queue: "write.queue", ...by("writer.write.in"), max_retries: 1, ...contract }
    ],
    entry_routes: [{ name: "start", routing_key: "planner.plan.in", target_stage: "plan" }]
  })
  const { counted, layer } = failing(fault)
  const written: Array<string> = []
  const plan = WorkflowHandler.make(({ payload }, { publishToStage }) => publishToStage("write", { payload }))
  const write = WorkflowHandler.make(({ task_id }, { retryAttempt }) =>
    retryAttempt === 0 ? Effect.fail("once") : Effect.sync(() => written.push(task_id))
  )
  const connected = Layer.provideMerge(BrokerClient.layer({ topology }), BrokerMemory.layerConnection())
  const working = Effect.gen(function* () {
    for (const [stage, handler] of Object.entries({ plan, write })) {
      const consumer = yield* WorkflowConsumer.make({
        stage,
        handler,
        retryStatuses: new RetryStatusConfig({ enabled: true }),
        observationSink: (observed) => {
          if (observed.event_type === "WorkflowMessageReceived" && observed.redelivered) counted.doubtful++
        }
      })
      yield* Effect.forkChild(consumer.run)
      yield* Effect.addFinalizer(() => Effect.forkChild(consumer.stop))
    }
    yield* TestClock.adjust("5 minutes")
  })
  const ended = Effect.andThen(Effect.scoped(working), TestClock.adjust("1 minute"))
  return yield* Effect.gen(function* () {
    yield* Effect.forEach(tasks, (task_id) =>
      Effect.flatMap(BrokerClient, ({ publishToEntry }) => publishToEntry({ task_id, payload: { task_id } }, "start"))
    ).pipe(Effect.provide(connected))
    yield* Effect.provide(ended, Layer.provideMerge(BrokerClient.layer({ topology }), layer))
    yield* Effect.provide(ended, connected)
    return yield* Effect.gen(function* () {
      const { inspect } = yield* Broker
      const left = yield* Effect.forEach(["plan.queue", "write.queue"], (queue) =>
        Effect.map(inspect(queue), (found) => Option.getOrThrow(found).messages)
      )
      const dead = [...(yield* letters("plan.queue.dlq")), ...(yield* letters("write.queue.dlq"))]
      return { counted, dead, left, written }
    }).pipe(Effect.provide(connected))
  }).pipe(Effect.provide(Layer.merge(BrokerMemory.layerServer(), StageDedup.layerMemory)))
})

describe("a crash at every point of a workflow of two stages", () => {
  it.effect.each([
    { name: "as it is", contract: {} },
    { name: "with deduplication", contract: { dedup_key_fields: ["task_id"] } }
  ])("$name: every task is written, and twice only where something was in doubt", ({ contract }) =>
    Effect.gen(function* () {
      const whole = yield* play(contract, undefined)
      assert.deepStrictEqual(whole.written.sort(), tasks)
      const { operations } = whole.counted
      assert.isAtLeast(operations, 6 * tasks.length)
      for (let at = 1; at <= operations; at++) {
        for (const what of faults) {
          const { counted, dead, left, written } = yield* play(contract, { at, what })
          const where = `${what} at operation ${at} of ${operations}`
          assert.deepStrictEqual(left, [0, 0], where)
          assert.deepStrictEqual([...new Set(written)].sort(), tasks, where)
          assert.deepStrictEqual(dead, [], where)
          if (written.length > tasks.length) assert.isAbove(counted.doubtful, 0, where)
          // one lost connection brings back a delivery of each stage, whose hand-overs multiply
          assert.isAtMost(written.length, 4 * tasks.length, where)
        }
      }
    })
  )
})
