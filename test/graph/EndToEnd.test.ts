import { assert, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import * as AggregationConsumer from "../../src/messaging/consume/AggregationConsumer.ts"
import * as AggregationHandler from "../../src/messaging/consume/AggregationHandler.ts"
import * as Handler from "../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../src/messaging/consume/TaskConsumer.ts"
import * as WorkflowConsumer from "../../src/messaging/consume/WorkflowConsumer.ts"
import * as WorkflowHandler from "../../src/messaging/consume/WorkflowHandler.ts"
import { ofMillis } from "../../src/messaging/envelope/Timestamp.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { LifecycleStatusConfig } from "../../src/messaging/topology/StatusSettings.ts"
import {
  RoutedTasksSharedStatusShardedAggregationTopology,
  RoutedTasksSharedStatusTopology,
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../src/messaging/topology/TaskTopology.ts"
import { SharedStatusWorkflowTopology } from "../../src/messaging/topology/WorkflowTopology.ts"
import { replay } from "../../src/status/replay/Replay.ts"
import { by } from "../messaging/SampleTopologies.ts"
import { drawn, explained, graphOf, living, naming, onBothServers, telling, working } from "./OnBothServers.ts"

const lifecycleStatuses = new LifecycleStatusConfig({ enabled: true })

/** Fails for the first so many times. */
const failing = (times: number) => {
  let left = times
  return Effect.suspend(() => (left-- > 0 ? Effect.fail(new Error("no ink")) : Effect.void))
}

onBothServers((provided) => {
  it.live("a shared task is retried, dead-lettered, replayed and done", () =>
    Effect.gen(function* () {
      const { tasks } = yield* naming
      const topology = new SharedTasksSharedStatusTopology({ ...tasks, tasks_routing_key: "tasks.key" })
      const run = Effect.gen(function* () {
        const { publishTask } = yield* BrokerClient
        const handler = Handler.make(() => attempt)
        const attempt = failing(2)
        yield* working(TaskConsumer.make({ handler, lifecycleStatuses, ...(yield* telling) }))
        yield* publishTask({ task_id: "t1" })
        const waiting = yield* explained("t1", "waiting_for_retry")
        assert.deepInclude(waiting, {
          queue_name: `${tasks.tasks_queue}.retry.2000ms.quorum`,
          retry_attempt: 1,
          max_retries: 1,
          reason: "handler_error"
        })
        assert.strictEqual(Date.parse(waiting?.until ?? "") - Date.parse(waiting?.since ?? ""), 2_000)
        const dead = yield* explained("t1", "dead_lettered")
        yield* replay(dead?.dlq_id ?? "")
        assert.deepInclude(yield* explained("t1", "finished"), { status: "completed" })

        const graph = yield* graphOf("t1", 12)
        assert.deepStrictEqual(drawn(graph), {
          nodes: [
            "dlq:t1:1 (handler_error)",
            "retry:t1:1 (retry 1)",
            "status:t1:1 (processing)",
            "status:t1:2 (retrying)",
            "status:t1:3 (processing)",
            "status:t1:4 (failed)",
            "status:t1:5 (processing)",
            "status:t1:6 (completed)",
            "task-attempt:t1:1 (t1 attempt 1)",
            "task-attempt:t1:2 (t1 attempt 2)",
            "task-attempt:t1:3 (t1 attempt 3)",
            "task:t1 (t1)"
          ],
          edges: [
            "dlq:t1:1 received_by task-attempt:t1:3",
            "retry:t1:1 received_by task-attempt:t1:2",
            "task-attempt:t1:1 published_status status:t1:1",
            "task-attempt:t1:1 published_status status:t1:2",
            "task-attempt:t1:1 retried_as retry:t1:1",
            "task-attempt:t1:2 dead_lettered_to dlq:t1:1",
            "task-attempt:t1:2 published_status status:t1:3",
            "task-attempt:t1:2 published_status status:t1:4",
            "task-attempt:t1:3 published_status status:t1:5",
            "task-attempt:t1:3 published_status status:t1:6",
            "task:t1 received_by task-attempt:t1:1",
            "task:t1 received_by task-attempt:t1:2",
            "task:t1 received_by task-attempt:t1:3"
          ]
        })
        assert.deepInclude(graph.summary, {
          status: "completed",
          graph_completeness: "full",
          completeness_reasons: []
        })
        const record = graph.nodes.find(({ kind }) => kind === "dlq_record")
        assert.deepInclude(record?.annotations, { state: "replayed", exception_type: "Error", retry_attempt: 1 })
      })
      yield* living(topology, run)
    }).pipe(provided)
  )

  it.live("a routed task is handed over by hand, retried and dead-lettered", () =>
    Effect.gen(function* () {
      const { tasks, worked } = yield* naming
      const resizing = new RoutedTasksSharedStatusTopology({ ...tasks, task_types: ["resize"] })
      const rotating = new RoutedTasksSharedStatusTopology({
        ...tasks,
        tasks_queue: worked("rotate"),
        task_types: ["rotate"]
      })
      const run = Effect.gen(function* () {
        const { publishTask } = yield* BrokerClient
        const rotator = yield* BrokerClient.make({ topology: rotating })
        yield* rotator.initialize
        const told = yield* telling
        const resize = Handler.make((_, context) => context.manualRetry({ taskType: "rotate", reason: "upright" }))
        yield* working(TaskConsumer.make({ handler: Handler.byTaskType({ resize }), lifecycleStatuses, ...told }))
        yield* publishTask({ task_id: "t1", task_type: "resize" })
        // the next attempt begins later than what was said of this one
        yield* graphOf("t1", 4)
        const rotate = Handler.make(() => attempt)
        const attempt = failing(2)
        yield* working(
          TaskConsumer.make({ handler: Handler.byTaskType({ rotate }), lifecycleStatuses, ...told }).pipe(
            Effect.provideService(BrokerClient, rotator)
          )
        )
        assert.deepInclude(yield* explained("t1", "dead_lettered"), { queue_name: `${worked("rotate")}.dlq` })

        const graph = yield* graphOf("t1", 12)
        assert.strictEqual(graph.topology_kind, "routed_tasks_shared_status")
        assert.deepStrictEqual(graph.annotations, { task_types: ["resize", "rotate"] })
        assert.deepStrictEqual(drawn(graph), {
          nodes: [
            "dlq:t1:1 (handler_error)",
            "retry:t1:1 (retry 1)",
            "status:t1:1 (processing)",
            "status:t1:2 (manual_retrying)",
            "status:t1:3 (processing)",
            "status:t1:4 (retrying)",
            "status:t1:5 (processing)",
            "status:t1:6 (failed)",
            "task-attempt:t1:1 (t1 attempt 1)",
            "task-attempt:t1:2 (t1 attempt 2)",
            "task-attempt:t1:3 (t1 attempt 3)",
            "task:t1 (t1)"
          ],
          edges: [
            "retry:t1:1 received_by task-attempt:t1:3",
            "task-attempt:t1:1 manual_retry_to task-attempt:t1:2",
            "task-attempt:t1:1 published_status status:t1:1",
            "task-attempt:t1:1 published_status status:t1:2",
            "task-attempt:t1:2 published_status status:t1:3",
            "task-attempt:t1:2 published_status status:t1:4",
            "task-attempt:t1:2 retried_as retry:t1:1",
            "task-attempt:t1:3 dead_lettered_to dlq:t1:1",
            "task-attempt:t1:3 published_status status:t1:5",
            "task-attempt:t1:3 published_status status:t1:6",
            "task:t1 received_by task-attempt:t1:1",
            "task:t1 received_by task-attempt:t1:2",
            "task:t1 received_by task-attempt:t1:3"
          ]
        })
        assert.deepInclude(graph.summary, { status: "failed", graph_completeness: "full" })
      })
      yield* living(resizing, run)
    }).pipe(provided)
  )

  for (const task_type of [undefined, "resize"]) {
    const kind = task_type === undefined ? "shared" : "routed"
    it.live(`results of ${kind} tasks are aggregated; one is retried, another dead-lettered`, () =>
      Effect.gen(function* () {
        const { aggregated, shards, tasks } = yield* naming
        const topology =
          task_type === undefined
            ? new SharedTasksSharedStatusShardedAggregationTopology({
                ...tasks,
                ...shards,
                tasks_routing_key: "tasks.key"
              })
            : new RoutedTasksSharedStatusShardedAggregationTopology({ ...tasks, ...shards, task_types: [task_type] })
        const run = Effect.gen(function* () {
          const { publishTask } = yield* BrokerClient
          const told = yield* telling
          const once = failing(1)
          yield* working(
            AggregationConsumer.make({
              shards: [0, 1],
              handler: AggregationHandler.make(({ task_id }, { client, parentTaskId = "" }) =>
                task_id === "c2"
                  ? Effect.fail(new Error("never"))
                  : Effect.andThen(once, client.publishStatus({ task_id: parentTaskId, status: "completed" }))
              ),
              ...told
            })
          )
          yield* working(
            TaskConsumer.make({
              handler: Handler.make((_, context) =>
                Effect.gen(function* () {
                  const timestamp = ofMillis(yield* Clock.currentTimeMillis)
                  // the next worker receives it later than it was said
                  yield* Effect.sleep("20 millis")
                  yield* context.publishAggregationStatus("aggregating", { timestamp, meta: { parent_task_id: "p" } })
                })
              ),
              observationSink: told.observationSink
            })
          )
          for (const task_id of ["c1", "c2"]) yield* publishTask({ task_id, ...(task_type && { task_type }) })
          assert.deepInclude(yield* explained("c1", "waiting_for_retry"), {
            queue_name: `${aggregated}.retry.2000ms.quorum`
          })
          assert.deepInclude(yield* explained("c2", "dead_lettered"), { queue_name: `${aggregated}.dlq` })
          assert.deepInclude(yield* explained("p", "finished"), { status: "completed" })

          const graph = yield* graphOf("p", 18)
          assert.deepStrictEqual(graph.related_task_ids, ["c1", "c2"])
          const nodesOf = (child: string) => [
            `aggregation_child:${child} (${child})`,
            `retry:${child}:1 (retry 1)`,
            `status:${child}:1 (aggregating)`,
            `status:${child}:2 (retrying)`,
            `task-attempt:${child}:1 (${child} attempt 1)`,
            `task-attempt:${child}:2 (${child} attempt 2)`,
            `task-attempt:${child}:3 (${child} attempt 3)`
          ]
          const edgesOf = (child: string) => [
            `aggregation_child:${child} aggregated_into task:p`,
            `aggregation_child:${child} received_by task-attempt:${child}:1`,
            `aggregation_child:${child} received_by task-attempt:${child}:2`,
            `aggregation_child:${child} received_by task-attempt:${child}:3`,
            `retry:${child}:1 received_by task-attempt:${child}:3`,
            `task-attempt:${child}:1 published_status status:${child}:1`,
            `task-attempt:${child}:2 published_status status:${child}:2`,
            `task-attempt:${child}:2 retried_as retry:${child}:1`
          ]
          assert.deepStrictEqual(drawn(graph), {
            nodes: [
              ...nodesOf("c1"),
              ...nodesOf("c2"),
              "dlq:c2:1 (handler_error)",
              "status:c2:3 (failed)",
              "status:p:1 (completed)",
              "task:p (p)"
            ].sort(),
            edges: [
              ...edgesOf("c1"),
              ...edgesOf("c2"),
              "task-attempt:c2:3 dead_lettered_to dlq:c2:1",
              "task-attempt:c2:3 published_status status:c2:3",
              "task:p published_status status:p:1"
            ].sort()
          })
          const queues = graph.nodes
            .filter(({ kind, task_id }) => kind === "task_attempt" && task_id === "c1")
            .map(({ annotations }) => [annotations["queue_name"], annotations["parent_task_id"]])
          assert.deepStrictEqual(queues, [
            [tasks.tasks_queue, null],
            [aggregated, "p"],
            [aggregated, "p"]
          ])
          assert.include(drawn(yield* graphOf("c1", 6)).edges, "task:c1 aggregated_into task:p")
        })
        yield* living(topology, run)
      }).pipe(provided)
    )
  }

  it.live("a workflow hands over to a stage that is retried and dead-lettered", () =>
    Effect.gen(function* () {
      const { exchange, status, worked } = yield* naming
      const topology = new SharedStatusWorkflowTopology({
        ...status,
        workflow_exchange: exchange("workflow"),
        stages: [
          { name: "plan", queue: worked("plan"), ...by("planner.plan.in") },
          { name: "write", queue: worked("write"), ...by("writer.write.in") }
        ],
        entry_routes: [{ name: "start", routing_key: "planner.plan.in", target_stage: "plan" }]
      })
      const run = Effect.gen(function* () {
        const { publishToEntry } = yield* BrokerClient
        const told = yield* telling
        yield* working(
          WorkflowConsumer.make({
            stage: "plan",
            handler: WorkflowHandler.make((_, context) =>
              Effect.andThen(context.publishStatus("planning"), context.publishToStage("write", { payload: {} }))
            ),
            ...told
          })
        )
        yield* publishToEntry({ task_id: "t1" }, "start")
        const nobody = yield* explained("t1", "no_consumer")
        assert.deepInclude(nobody, { queue_name: worked("write"), consumers: 0 })
        yield* graphOf("t1", 5)
        const attempt = failing(2)
        yield* working(WorkflowConsumer.make({ stage: "write", handler: WorkflowHandler.make(() => attempt), ...told }))
        assert.deepInclude(yield* explained("t1", "waiting_for_retry"), {
          queue_name: `${worked("write")}.retry.2000ms.quorum`
        })
        assert.deepInclude(yield* explained("t1", "dead_lettered"), { queue_name: `${worked("write")}.dlq` })

        const graph = yield* graphOf("t1", 11)
        assert.deepStrictEqual(drawn(graph), {
          nodes: [
            "dlq:t1:1 (handler_error)",
            "message:plan (plan)",
            "message:write (write)",
            "retry:t1:1 (retry 1)",
            "stage-attempt:t1:plan:1 (plan attempt 1)",
            "stage-attempt:t1:write:1 (write attempt 1)",
            "stage-attempt:t1:write:2 (write attempt 2)",
            "status:t1:1 (planning)",
            "status:t1:2 (retrying)",
            "status:t1:3 (failed)",
            "task:t1 (t1)"
          ],
          edges: [
            "message:plan entered_stage stage-attempt:t1:plan:1",
            "message:write entered_stage stage-attempt:t1:write:1",
            "message:write entered_stage stage-attempt:t1:write:2",
            "retry:t1:1 received_by stage-attempt:t1:write:2",
            "stage-attempt:t1:plan:1 published_status status:t1:1",
            "stage-attempt:t1:plan:1 stage_transitioned_to message:write",
            "stage-attempt:t1:write:1 published_status status:t1:2",
            "stage-attempt:t1:write:1 retried_as retry:t1:1",
            "stage-attempt:t1:write:2 dead_lettered_to dlq:t1:1",
            "stage-attempt:t1:write:2 published_status status:t1:3",
            "task:t1 received_by message:plan"
          ]
        })
        assert.deepInclude(graph.summary, { status: "failed", graph_completeness: "full", completeness_reasons: [] })
      })
      yield* living(topology, run)
    }).pipe(provided)
  )
})
