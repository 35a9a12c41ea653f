import type { AggregationParameters } from "../../src/messaging/topology/Aggregation.ts"
import {
  type RoutedParameters,
  RoutedTasksSharedStatusShardedAggregationTopology,
  RoutedTasksSharedStatusTopology,
  type SharedParameters,
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../src/messaging/topology/TaskTopology.ts"
import { SharedStatusWorkflowTopology, type WorkflowParameters } from "../../src/messaging/topology/WorkflowTopology.ts"

const status = { status_exchange: "status", status_queue: "status.queue", status_use_streams: false }
const tasks = { tasks_exchange: "tasks", tasks_queue: "tasks.queue", ...status }

export const shared = (more: Partial<SharedParameters> = {}) =>
  new SharedTasksSharedStatusTopology({ ...tasks, tasks_routing_key: "tasks.key", ...more })

export const routed = (more: Partial<RoutedParameters> = {}) =>
  new RoutedTasksSharedStatusTopology({ ...tasks, task_types: ["resize", "rotate"], ...more })

export const sharded = (more: Partial<SharedParameters & AggregationParameters> = {}) =>
  new SharedTasksSharedStatusShardedAggregationTopology({
    ...tasks,
    tasks_routing_key: "tasks.key",
    shard_count: 4,
    ...more
  })

export const routedSharded = (more: Partial<RoutedParameters & AggregationParameters> = {}) =>
  new RoutedTasksSharedStatusShardedAggregationTopology({ ...tasks, task_types: ["resize"], shard_count: 4, ...more })

/** Two planners hand over to one writer (fan-in), which has two keys; work comes in by two entry routes. */
export const workflow = (more: Partial<WorkflowParameters> = {}) =>
  new SharedStatusWorkflowTopology({
    ...status,
    workflow_exchange: "workflow",
    stages: [
      { name: "outline", queue: "outline.queue", ...by("planner.outline.in", "replanner.outline.in") },
      { name: "research", queue: "research.queue", ...by("planner.research.in") },
      { name: "write", queue: "write.queue", ...by("writer.write.in", "writer.*.urgent") }
    ],
    entry_routes: [
      { name: "start", routing_key: "planner.outline.in", target_stage: "outline" },
      { name: "again", routing_key: "replanner.outline.in", target_stage: "outline" }
    ],
    ...more
  })

export const by = (publish: string, ...others: ReadonlyArray<string>) => ({
  binding_keys: [publish, ...others],
  publish_routing_key: publish
})
