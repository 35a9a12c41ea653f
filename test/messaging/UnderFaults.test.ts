import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HandlerCheck } from "../../layers/testing/index.ts"
import {
  AggregationHandler,
  AggregationWorkerRuntime,
  BrokerClient,
  Handler,
  Redis,
  RetryPolicy,
  StageDedup,
  TaskConsumer,
  WorkflowConsumer,
  WorkflowHandler
} from "../../src/messaging/index.ts"
import { by, sharded, workflow } from "./SampleTopologies.ts"

const retryPolicy = new RetryPolicy({ max_retries: 4, delay_ms: 1_000 })

const passes = <W, WE, E, IE>(check: HandlerCheck.Check<W, WE, E, IE>) =>
  Effect.map(HandlerCheck.run(check), ({ single }) => assert.strictEqual(single.ran, single.possible))

describe("under each fault and some combinations", () => {
  it.effect("sharded aggregation counts each part once, and tells of the end", () =>
    passes({
      name: "aggregation",
      topology: sharded(),
      world: Layer.empty,
      worker: Layer.merge(
        TaskConsumer.layer({
          retryPolicy,
          handler: Handler.make((_task, context) =>
            context.publishAggregationStatus("counted", { meta: { parent_task_id: "whole" } })
          )
        }),
        AggregationWorkerRuntime.layer({
          topology: sharded(),
          shardGroups: [[0, 1, 2, 3]],
          retryPolicy,
          handler: AggregationHandler.make((_event, { client, taskId }) =>
            Effect.gen(function* () {
              const { command, key } = yield* Redis
              yield* command("SADD", key("parts"), taskId)
              if ((yield* command("SCARD", key("parts"))) !== 2) return
              yield* client.publishStatus({ task_id: "whole", status: "completed" })
            })
          )
        })
      ),
      tasks: [{ task_id: "a" }, { task_id: "b" }],
      maxRuns: 120,
      invariant: ({ deadLetters, statusesOf }) =>
        Effect.gen(function* () {
          const { command, key } = yield* Redis
          assert.strictEqual(yield* Effect.orDie(command("SCARD", key("parts"))), 2)
          assert.include(statusesOf("whole"), "completed")
          assert.deepStrictEqual(deadLetters, [])
        })
    })
  )

  it.effect("a stage that compares messages does the work, though a crash leaves its claim", () =>
    passes({
      name: "stage",
      topology: workflow({
        stages: [{ name: "outline", queue: "outline.queue", ...by("planner.outline.in"), dedup_key_fields: ["topic"] }],
        entry_routes: [{ name: "start", routing_key: "planner.outline.in", target_stage: "outline" }]
      }),
      world: Layer.empty,
      worker: WorkflowConsumer.layer({
        stage: "outline",
        retryPolicy,
        handler: WorkflowHandler.make((_message, context) => context.publishStatus("outlined"))
      }).pipe(Layer.provide(StageDedup.layerRedis)),
      tasks: Effect.flatMap(BrokerClient, ({ publishToEntry }) =>
        publishToEntry({ task_id: "a", payload: { topic: "bees" } }, "start")
      ),
      maxRuns: 200,
      invariant: ({ statusesOf }) => Effect.sync(() => assert.include(statusesOf("a"), "outlined"))
    })
  )
})
