import { Context, Effect, Layer } from "effect"
import * as StatusRuntime from "../../src/graph/StatusRuntime.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { Broker } from "../../src/services/Broker.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import { eventually } from "../Eventually.ts"
import * as TemporaryNames from "../TemporaryNames.ts"
import { start } from "./DeadLetterServer.ts"
import { type Names, runtimeOf, workerOf } from "./RepairedTasks.ts"

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
