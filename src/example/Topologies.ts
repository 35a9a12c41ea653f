import { RoutedTasksSharedStatusShardedAggregationTopology } from "../messaging/topology/TaskTopology.ts"
import { SharedStatusWorkflowTopology } from "../messaging/topology/WorkflowTopology.ts"

/** All workers publish their statuses to the same stream. */
const statuses = {
  status_exchange: "svc.example.status",
  status_queue: "svc.example.status",
  status_stream_max_length_gb: 1,
  prefetch_count: 4
}

const pages = {
  ...statuses,
  tasks_exchange: "svc.example.tasks",
  shard_count: 2,
  aggregation_queue_template: "svc.example.books.{shard}",
  aggregation_queue_name_prefix: "svc.example.books"
}

export const readTopology = new RoutedTasksSharedStatusShardedAggregationTopology({
  ...pages,
  tasks_queue: "svc.example.read",
  task_types: ["read"]
})

export const scanTopology = new RoutedTasksSharedStatusShardedAggregationTopology({
  ...pages,
  tasks_queue: "svc.example.scan",
  task_types: ["scan"]
})

/** The workflow that summarises a book after all its pages were read. */
export const summaryTopology = new SharedStatusWorkflowTopology({
  ...statuses,
  workflow_exchange: "svc.example.workflow",
  stages: [
    {
      name: "outline",
      queue: "svc.example.outline",
      binding_keys: ["planner.outline.in"],
      publish_routing_key: "planner.outline.in",
      allowed_next_stages: ["write"]
    },
    {
      name: "write",
      queue: "svc.example.write",
      binding_keys: ["writer.write.in"],
      publish_routing_key: "writer.write.in",
      terminal: true
    }
  ],
  entry_routes: [{ name: "book", routing_key: "planner.outline.in", target_stage: "outline" }]
})
