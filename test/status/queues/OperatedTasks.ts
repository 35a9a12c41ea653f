import { hostname } from "node:os"
import { Effect, Layer } from "effect"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import * as ControlStore from "../../../src/messaging/control/ControlStore.ts"
import * as RedisWorkControl from "../../../src/messaging/control/RedisWorkControl.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig, RetryStatusConfig } from "../../../src/messaging/topology/StatusSettings.ts"
import { SharedTasksSharedStatusTopology } from "../../../src/messaging/topology/TaskTopology.ts"

export const crashPoints = [
  "before the first answer",
  "after the first answer",
  "before the status",
  "after the status",
  "before the second answer",
  "after the second answer"
] as const
export type CrashPoint = (typeof crashPoints)[number]

export interface Names {
  readonly tasksExchange: string
  readonly queue: string
  readonly statusExchange: string
  readonly statusQueue: string
  readonly streams?: boolean
}

export interface ProcessSettings {
  readonly names: Names
  readonly rabbitmq: string
  readonly redis: string
  readonly prefix: string
  readonly journal: string
  readonly concurrency: number
  readonly crashAt?: CrashPoint
}

export const retryDelayMs = 2_500

export const topologyOf = ({ queue, statusExchange, statusQueue, streams = false, tasksExchange }: Names) =>
  new SharedTasksSharedStatusTopology({
    tasks_exchange: tasksExchange,
    tasks_queue: queue,
    tasks_routing_key: "task",
    status_exchange: statusExchange,
    status_queue: statusQueue,
    status_use_streams: streams
  })

/**
 * A worker whose tasks do as their payload says: `ms`: how long they take, `fail`: so many first attempts fail,
 * `stubborn`: they take no interruption. `note` is told of every start and end.
 */
export const worker = (
  names: Names,
  { concurrency = 4, note }: { readonly note: (entry: string) => void; readonly concurrency?: number }
) =>
  TaskConsumer.layer({
    concurrency,
    idleRetrySeconds: 0.2,
    retryPolicy: new RetryPolicy({ max_retries: 3, delay_ms: retryDelayMs }),
    lifecycleStatuses: new LifecycleStatusConfig({ enabled: true }),
    retryStatuses: new RetryStatusConfig({ enabled: true }),
    handler: Handler.make(({ payload, task_id }, { retryAttempt }) =>
      Effect.gen(function* () {
        note(`started ${task_id}`)
        const sleep = Effect.sleep(Number(payload["ms"] ?? 0))
        yield* payload["stubborn"] === true ? Effect.uninterruptible(sleep) : sleep
        if (retryAttempt < Number(payload["fail"] ?? 0)) return yield* Effect.fail(new RangeError("as it was told to"))
        note(`ended ${task_id}`)
      })
    )
  }).pipe(
    Layer.provide(BrokerClient.layer({ topology: topologyOf(names) })),
    Layer.provide(RedisWorkControl.layer({ host: hostname(), pid: process.pid, version: "1.2.3" })),
    Layer.provide(ControlStore.layer())
  )
