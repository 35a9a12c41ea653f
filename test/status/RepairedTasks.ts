import { Effect, Layer } from "effect"
import * as Handler from "../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../src/messaging/consume/TaskConsumer.ts"
import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig } from "../../src/messaging/topology/StatusSettings.ts"
import { SharedTasksSharedStatusTopology } from "../../src/messaging/topology/TaskTopology.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"

export interface Names {
  readonly tasksExchange: string
  readonly queue: string
  readonly statusExchange: string
  readonly statusQueue: string
}

export const topologyOf = ({ queue, statusExchange, statusQueue, tasksExchange }: Names) =>
  new SharedTasksSharedStatusTopology({
    tasks_exchange: tasksExchange,
    tasks_queue: queue,
    tasks_routing_key: "task",
    status_exchange: statusExchange,
    status_queue: statusQueue,
    status_use_streams: false
  })

/** The options of a status server that looks often. */
export const runtimeOf = (names: Names) => ({
  topology: topologyOf(names),
  replayWorker: { lookEvery: "20 millis", perSecond: 100_000, leaseSeconds: 1 } as const,
  replayOutcomes: { lookEvery: "50 millis" } as const,
  archiveSweeper: { every: "200 millis", takesAtMost: "1 second" } as const,
  dlqStore: { replay_lease_seconds: 1 }
})

/** A worker whose tasks fail while their payload says `bad`, with that as the name of the exception. */
export const workerOf = (handled: Array<string>, mends: ReadonlySet<string>) =>
  Layer.unwrap(
    Effect.map(DeadLetterStore, (dlqStore) =>
      TaskConsumer.layer({
        concurrency: 4,
        stopWithin: "100 millis",
        retryPolicy: new RetryPolicy({ max_retries: 0 }),
        lifecycleStatuses: new LifecycleStatusConfig({ enabled: true }),
        dlqStore,
        handler: Handler.make(({ payload, task_id }) => {
          if (payload["hang"] === true && mends.has(task_id)) return Effect.never
          if (payload["bad"] === undefined || mends.has(task_id)) return Effect.sync(() => void handled.push(task_id))
          return Effect.fail(Object.assign(new Error("as it was told to"), { name: String(payload["bad"]) }))
        })
      })
    )
  )
