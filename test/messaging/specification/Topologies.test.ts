import { assert, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import {
  RoutedTasksSharedStatusShardedAggregationTopology,
  RoutedTasksSharedStatusTopology,
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../../src/messaging/topology/TaskTopology.ts"
import type { Topology } from "../../../src/messaging/topology/Topology.ts"
import { SharedStatusWorkflowTopology } from "../../../src/messaging/topology/WorkflowTopology.ts"
import { Broker } from "../../../src/services/Broker.ts"
import type { TemporaryNames } from "../../TemporaryNames.ts"
import { letters } from "../Letters.ts"
import { by } from "../SampleTopologies.ts"
import { clientOf, firstOf, type Named, named, onBothBrokers, ready } from "./OnBothBrokers.ts"

/** Four children of four parents, whose shards of 4 are golden: 0, 2, 3 and 1. */
const children = ["p0", "p1", "p2", "p3"].map((parent) => ({
  task_id: `child of ${parent}`,
  status: "completed",
  meta: { parent_task_id: parent }
}))

const aggregated = Effect.fnUntraced(function* (topology: Topology) {
  const { names } = yield* named
  const { ensureAggregationQueue, publishAggregationStatus } = yield* clientOf(topology)
  const [one, several] = [yield* ensureAggregationQueue([2]), yield* ensureAggregationQueue([3, 1])]
  for (const queue of [one, several]) names.queue(queue)
  for (const child of children) yield* publishAggregationStatus(child)
  yield* ready(one, 1)
  yield* ready(several, 2)
  // the same events remain visible to everybody
  yield* ready(topology.status.queue, children.length)
  yield* (yield* Broker).remove({ queues: [one, several] })
})

const layouts: ReadonlyArray<
  readonly [
    kind: string,
    layout: string,
    check: (named: Named) => Effect.Effect<Topology, unknown, Broker | TemporaryNames | Scope.Scope>
  ]
> = [
  [
    "SharedTasksSharedStatusTopology",
    "one shared task queue, one shared status stream",
    Effect.fnUntraced(function* ({ shared }) {
      const topology = new SharedTasksSharedStatusTopology({ ...shared, status_use_streams: true })
      const { publishStatus, publishTask } = yield* clientOf(topology)
      yield* publishTask({ task_id: "t1", task_type: "resize" })
      yield* publishTask({ task_id: "t2" })
      yield* publishStatus({ task_id: "t1", status: "searching" })
      yield* ready(shared.tasks_queue, 2)
      assert.deepInclude(yield* yield* firstOf(topology.status.queue, { "x-stream-offset": "first" }), {
        task_id: "t1",
        status: "searching"
      })
      return topology
    })
  ],
  [
    "SharedTasksSharedStatusShardedAggregationTopology",
    "shared plane plus shard-bound aggregation worker queues on the status exchange",
    Effect.fnUntraced(function* ({ shared, shards }) {
      const topology = new SharedTasksSharedStatusShardedAggregationTopology({ ...shared, ...shards })
      const { publishTask } = yield* clientOf(topology)
      yield* publishTask({ task_id: "t1" })
      yield* ready(shared.tasks_queue, 1)
      yield* aggregated(topology)
      return topology
    })
  ],
  [
    "RoutedTasksSharedStatusTopology",
    "task queues bound by task_type, one shared status queue",
    Effect.fnUntraced(function* ({ names, routed }) {
      const other = { ...routed, tasks_queue: names.queue("other.queue"), task_types: ["scan"] }
      const topology = new RoutedTasksSharedStatusTopology(routed)
      const { publishStatus, publishTask } = yield* clientOf(topology)
      const { publishStatus: publishOther } = yield* clientOf(new RoutedTasksSharedStatusTopology(other))
      for (const task_type of ["resize", "rotate", "scan"]) yield* publishTask({ task_id: task_type, task_type })
      yield* publishStatus({ task_id: "resize", status: "searching" })
      yield* publishOther({ task_id: "scan", status: "searching" })
      yield* ready(routed.tasks_queue, 2)
      yield* ready(other.tasks_queue, 1)
      yield* ready(routed.status_queue, 2)
      const error = yield* Effect.flip(publishTask({ task_id: "t", task_type: "unbound" }))
      assert.strictEqual(error._tag, "Unroutable")
      return topology
    })
  ],
  [
    "RoutedTasksSharedStatusShardedAggregationTopology",
    "routed task queues plus shard-bound aggregation queues",
    Effect.fnUntraced(function* ({ routed, shards }) {
      const topology = new RoutedTasksSharedStatusShardedAggregationTopology({ ...routed, ...shards })
      const { publishTask } = yield* clientOf(topology)
      yield* publishTask({ task_id: "t1", task_type: "rotate" })
      yield* ready(routed.tasks_queue, 1)
      yield* aggregated(topology)
      return topology
    })
  ],
  [
    "SharedStatusWorkflowTopology",
    "one workflow topic exchange, one durable inbox queue per consuming stage, one shared status queue",
    Effect.fnUntraced(function* ({ workflow }) {
      const topology = new SharedStatusWorkflowTopology(workflow)
      const { publishStatus, publishToEntry, publishToStage } = yield* clientOf(topology)
      yield* publishToEntry({ task_id: "t1" }, "again")
      yield* publishToStage({ task_id: "t1" }, "plan")
      yield* publishToStage({ task_id: "t1" }, "write")
      yield* publishStatus({ task_id: "t1", status: "searching" })
      const [plan, write] = workflow.stages
      yield* ready(plan?.queue ?? "", 2)
      yield* ready(write?.queue ?? "", 1)
      yield* ready(workflow.status_queue, 1)
      return topology
    })
  ]
]

onBothBrokers("topologies", (provided) => {
  it.live.each(layouts)("%s: %s", ([, , check]) =>
    Effect.gen(function* () {
      const topology = yield* check(yield* named)
      const broker = yield* Broker
      for (const exchange of topology.exchanges) {
        assert.deepStrictEqual(yield* broker.examine({ exchange }), { _tag: "Same" })
      }
      for (const queue of topology.queues) {
        assert.deepStrictEqual(yield* broker.examine({ queue: { ...queue, durable: true } }), { _tag: "Same" })
      }
    }).pipe(provided)
  )

  it.live("workflow routing convention: planner, replanner and writer keys, and fan-in to one inbox", () =>
    Effect.gen(function* () {
      const { names, workflow } = yield* named
      const [outline, research, write] = ["outline", "research", "write"].map((name) => names.queue(name))
      const client = yield* clientOf(
        new SharedStatusWorkflowTopology({
          ...workflow,
          stages: [
            { name: "outline", queue: outline ?? "", ...by("planner.outline.in", "replanner.outline.in") },
            { name: "research", queue: research ?? "", ...by("planner.research.in") },
            { name: "write", queue: write ?? "", ...by("writer.write.in") }
          ],
          entry_routes: [
            { name: "start", routing_key: "planner.outline.in", target_stage: "outline" },
            { name: "again", routing_key: "replanner.outline.in", target_stage: "outline" }
          ]
        })
      )
      yield* client.publishToEntry({ task_id: "t1" }, "start")
      yield* client.publishToEntry({ task_id: "t1" }, "again")
      yield* ready(outline ?? "", 2)
      const keys = (yield* letters(outline ?? "")).map(({ routingKey }) => routingKey)
      assert.deepStrictEqual(keys, ["planner.outline.in", "replanner.outline.in"])
      // the backlog of both is one number
      for (const origin_stage of ["outline", "research"]) {
        yield* client.publishToStage({ task_id: "t1", origin_stage }, "write")
      }
      yield* ready(write ?? "", 2)
      const origins = (yield* letters(write ?? "")).map(({ body, routingKey }) => [
        Object(body).origin_stage,
        routingKey
      ])
      assert.deepStrictEqual(origins, [
        ["outline", "writer.write.in"],
        ["research", "writer.write.in"]
      ])
    }).pipe(provided)
  )
})
