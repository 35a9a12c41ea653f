import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as AggregationConsumer from "../../../src/messaging/consume/AggregationConsumer.ts"
import * as AggregationHandler from "../../../src/messaging/consume/AggregationHandler.ts"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import * as WorkflowConsumer from "../../../src/messaging/consume/WorkflowConsumer.ts"
import * as WorkflowHandler from "../../../src/messaging/consume/WorkflowHandler.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig } from "../../../src/messaging/topology/StatusSettings.ts"
import {
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../../src/messaging/topology/TaskTopology.ts"
import type { Topology } from "../../../src/messaging/topology/Topology.ts"
import { SharedStatusWorkflowTopology } from "../../../src/messaging/topology/WorkflowTopology.ts"
import { Broker } from "../../../src/services/Broker.ts"
import { eventually } from "../../Eventually.ts"
import { observer } from "../AtWork.ts"
import { clientOf, named, onBothBrokers } from "./OnBothBrokers.ts"

/** Waits 200 ms once, then gives up. */
const retryPolicy = new RetryPolicy({ max_retries: 1, delay_ms: 200 })

/** What succeeds and what fails, by the name of the task. */
const handled = (taskId: string) => (taskId === "bad" ? Effect.fail(new Error("no such page")) : Effect.void)

/** Runs consumers of a topology until they have observed so many events of a type. */
const observing = Effect.fnUntraced(function* <E, E2>(
  topology: Topology,
  observed: ReturnType<typeof observer>,
  consumers: ReadonlyArray<
    Effect.Effect<
      { readonly queue: string; readonly run: Effect.Effect<void>; readonly stop: Effect.Effect<void> },
      E,
      Broker | BrokerClient
    >
  >,
  publish: (client: BrokerClient["Service"]) => Effect.Effect<unknown, E2>,
  until: ReadonlyArray<string>
) {
  const client = yield* clientOf(topology)
  const broker = yield* Broker
  for (const make of consumers) {
    const { queue, run, stop } = yield* Effect.provideService(make, BrokerClient, client)
    const queues = [queue, `${queue}.retry.200ms.quorum`, `${queue}.dlq`]
    yield* Effect.addFinalizer(() => Effect.orDie(broker.remove({ queues })))
    yield* Effect.forkScoped(run)
    yield* Effect.addFinalizer(() => stop)
    yield* eventually(broker.inspect(queue), (found) => found._tag === "Some" && found.value.consumers === 1)
  }
  yield* publish(client)
  yield* eventually(Effect.sync(observed.types), (types) => until.every((type) => types.some((seen) => seen === type)))
  // whose they are, so that a graph of the task can be made of them
  const named = observed.all().filter(({ event_type }) => until.includes(event_type))
  for (const observation of named) assert.include(["good", "bad"], "task_id" in observation && observation.task_id)
})

onBothBrokers("observation events", (provided) => {
  it.live(
    "shared and routed task: TaskMessageReceived, TaskLifecycleStatusPublished, ConsumerRetryScheduled, ConsumerDeadLetterPublished",
    () =>
      Effect.gen(function* () {
        const { shared } = yield* named
        const observed = observer()
        const consumer = TaskConsumer.make({
          handler: Handler.make(({ task_id }) => handled(task_id)),
          retryPolicy,
          lifecycleStatuses: new LifecycleStatusConfig({ enabled: true }),
          observationSink: observed.sink
        })
        yield* observing(
          new SharedTasksSharedStatusTopology(shared),
          observed,
          [Effect.map(consumer, ({ run, stop }) => ({ queue: shared.tasks_queue, run, stop }))],
          ({ publishTasks }) => publishTasks([{ task_id: "good" }, { task_id: "bad" }]),
          [
            "TaskMessageReceived",
            "TaskLifecycleStatusPublished",
            "ConsumerRetryScheduled",
            "ConsumerDeadLetterPublished"
          ]
        )
      }).pipe(provided)
  )

  it.live(
    "aggregation: AggregationMessageReceived, AggregationMessageAcked, AggregationHandlerFailed, AggregationRetryScheduled, AggregationDeadLetterPublished",
    () =>
      Effect.gen(function* () {
        const { names, shards, shared } = yield* named
        const observed = observer()
        yield* observing(
          new SharedTasksSharedStatusShardedAggregationTopology({ ...shared, ...shards }),
          observed,
          [
            AggregationConsumer.make({
              shards: [0, 1, 2, 3],
              queueName: names.queue("aggregated"),
              handler: AggregationHandler.make(({ task_id }) => handled(task_id)),
              retryPolicy,
              observationSink: observed.sink
            })
          ],
          ({ publishAggregationStatus }) =>
            Effect.forEach(["good", "bad"], (task_id) =>
              publishAggregationStatus({ task_id, status: "completed", meta: { parent_task_id: "p0" } })
            ),
          [
            "AggregationMessageReceived",
            "AggregationMessageAcked",
            "AggregationHandlerFailed",
            "AggregationRetryScheduled",
            "AggregationDeadLetterPublished"
          ]
        )
      }).pipe(provided)
  )

  it.live("workflow: WorkflowMessageReceived, WorkflowMessagePublished, WorkflowStageAcked, WorkflowStageFailed", () =>
    Effect.gen(function* () {
      const { workflow } = yield* named
      const observed = observer()
      const shared = { retryPolicy, observationSink: observed.sink }
      yield* observing(
        new SharedStatusWorkflowTopology(workflow),
        observed,
        [
          WorkflowConsumer.make({
            ...shared,
            stage: "plan",
            handler: WorkflowHandler.make(({ payload }, { publishToStage }) => publishToStage("write", { payload }))
          }),
          WorkflowConsumer.make({
            ...shared,
            stage: "write",
            handler: WorkflowHandler.make(({ task_id }) => handled(task_id))
          })
        ],
        ({ publishToEntry }) => Effect.forEach(["good", "bad"], (task_id) => publishToEntry({ task_id }, "again")),
        ["WorkflowMessageReceived", "WorkflowMessagePublished", "WorkflowStageAcked", "WorkflowStageFailed"]
      )
    }).pipe(provided)
  )
})
