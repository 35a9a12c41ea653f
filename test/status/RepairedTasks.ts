import { Context, Effect, Layer } from "effect"
import * as StatusRuntime from "../../src/graph/StatusRuntime.ts"
import * as Handler from "../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig } from "../../src/messaging/topology/StatusSettings.ts"
import { SharedTasksSharedStatusTopology } from "../../src/messaging/topology/TaskTopology.ts"
import { Broker } from "../../src/services/Broker.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import { eventually } from "../Eventually.ts"
import * as TemporaryNames from "../TemporaryNames.ts"
import { start } from "./DeadLetterServer.ts"

export interface Names {
  readonly tasksExchange: string
  readonly queue: string
  readonly statusExchange: string
  readonly statusQueue: string
}

export const names = Effect.map(TemporaryNames.TemporaryNames, (names): Names => {
  const queue = names.queue("work")
  names.queue("work.dlq")
  return {
    queue,
    tasksExchange: names.exchange("tasks"),
    statusExchange: names.exchange("status"),
    statusQueue: names.queue("status")
  }
})

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

/** A status server, and a worker with dead letters. */
export const world = Effect.gen(function* () {
  const given = yield* names
  const context = yield* Layer.build(StatusRuntime.layer(runtimeOf(given)))
  const [handled, mends] = [[] as string[], new Set<string>()]
  const client = Context.get(context, BrokerClient)
  const store = Context.get(context, DeadLetterStore)
  yield* Layer.build(workerOf(handled, mends)).pipe(Effect.provide(context))
  const server = yield* start({}, { worker: null }).pipe(Effect.provide(context))
  const letterOf = (task_id: string, after = 0) =>
    Effect.map(
      eventually(store.list({ task_id }, { limit: 50 }), ({ items }) => items.length > after),
      ({ items }) => items[0]?.dlq_id ?? ""
    )
  const queued = (queue: string) =>
    Effect.flatMap(Broker, ({ inspect }) =>
      Effect.map(inspect(queue), (found) => (found._tag === "Some" ? found.value.messages : -1))
    )
  return {
    ...server,
    names: given,
    store,
    handled,
    mends,
    letterOf,
    letters: `${given.queue}.dlq`,
    queued,
    publish: (task_id: string, payload: Readonly<Record<string, unknown>>) => client.publishTask({ task_id, payload }),
    /** Publishes a task that fails; the result is its dead letter. */
    fail: (task_id: string, bad = "RangeError", more: Readonly<Record<string, unknown>> = {}) =>
      Effect.andThen(client.publishTask({ task_id, payload: { ...more, bad } }), letterOf(task_id))
  }
})
