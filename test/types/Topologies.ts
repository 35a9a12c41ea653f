import {
  RetryPolicy,
  RoutedTasksSharedStatusTopology,
  SharedTasksSharedStatusTopology
} from "../../src/messaging/index.ts"

const shared = {
  tasks_exchange: "mail.tasks",
  tasks_queue: "mail.send",
  tasks_routing_key: "mail.send",
  status_exchange: "mail.status",
  status_queue: "mail.status"
}

export const valid = new SharedTasksSharedStatusTopology({ ...shared, task_queue_type: "quorum", prefetch_count: 5 })

export const mistakes = [
  () => {
    const { tasks_queue: _, ...others } = shared
    // @ts-expect-error: tasks_queue is missing
    return new SharedTasksSharedStatusTopology(others)
  },
  () =>
    new SharedTasksSharedStatusTopology({
      ...shared,
      // @ts-expect-error: the parameter is called task_max_priority
      task_priority: 5
    }),
  () =>
    new SharedTasksSharedStatusTopology({
      ...shared,
      // @ts-expect-error: a task queue is no stream
      task_queue_type: "stream"
    }),
  () =>
    new SharedTasksSharedStatusTopology({
      ...shared,
      // @ts-expect-error: aggregation needs SharedTasksSharedStatusShardedAggregationTopology
      shard_count: 4
    }),
  () =>
    new SharedTasksSharedStatusTopology({
      ...shared,
      routing_strategy: {
        // @ts-expect-error: an additional member of a task is unknown, and a routing key is a text
        taskRoutingKey: (task) => task["region"],
        statusRoutingKey: ({ task_id }) => task_id
      }
    }),
  () => {
    const { tasks_routing_key: _, ...routed } = shared
    // @ts-expect-error: a routed topology needs task_types
    return new RoutedTasksSharedStatusTopology(routed)
  },
  // @ts-expect-error: the parameter is called max_retries
  () => new RetryPolicy({ maxRetries: 5 }),
  // @ts-expect-error: delays are numbers of milliseconds
  () => new RetryPolicy({ delay_ms: "10 seconds" })
]
