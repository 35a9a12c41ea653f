import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import { SharedTasksSharedStatusTopology } from "../../src/messaging/topology/TaskTopology.ts"

/** What the publishers and the workers of the run with faults have in common. The broker is theirs alone. */
export const topology = new SharedTasksSharedStatusTopology({
  tasks_exchange: "tasks",
  tasks_queue: "tasks.queue",
  tasks_routing_key: "tasks",
  status_exchange: "status",
  status_queue: "status.queue",
  prefetch_count: 20
})

export const retryPolicy = new RetryPolicy({ max_retries: 2, delay_ms: 250 })

export const retryQueue = "tasks.queue.retry.250ms.quorum"
export const deadLetterQueue = "tasks.queue.dlq"

export const taskOf = (n: number) => `task-${n}`

const numberOf = (task: string) => Number(task.slice("task-".length))

/** How often the handler of a task fails: one in five does once, one in twenty always. */
const failuresOf = (task: string): number => {
  const n = numberOf(task)
  if (n % 20 === 0) return Number.POSITIVE_INFINITY
  return n % 5 === 0 ? 1 : 0
}

export const isFailing = (task: string, attempt: number): boolean => attempt < failuresOf(task)

export const endOf = (task: string) => (isFailing(task, retryPolicy.maxRetries) ? "dead" : "handled")

/** Milliseconds, so that deliveries are open when something breaks. */
export const takes = (task: string): number => 5 + (numberOf(task) % 20)
