import { Effect, Option } from "effect"
import type * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { RoutedTasksSharedStatusTopology } from "../../../src/messaging/topology/TaskTopology.ts"
import { Broker, type Field } from "../../../src/services/Broker.ts"
import { clientOf, named } from "./OnBothBrokers.ts"

/**
 * A worker of the task type `resize`, whose retries wait a fifth of a second; beside it a queue for `rotate`, and one for
 * what is rejected.
 */
export const working = Effect.fnUntraced(function* (
  handler: Handler.TaskHandler,
  options: { readonly retries?: number } = {}
) {
  const { names, routed } = yield* named
  const queue = routed.tasks_queue
  const { retries } = options
  const topology = new RoutedTasksSharedStatusTopology({
    ...routed,
    task_types: ["resize"],
    dead_letter_exchange: names.exchange("dead")
  })
  const client = yield* clientOf(topology)
  const broker = yield* Broker
  const [other, rejected] = [names.queue("other.queue"), names.queue("rejected.queue")]
  yield* broker.declare({
    exchanges: [],
    queues: [{ name: other }, { name: rejected }],
    bindings: [
      { exchange: routed.tasks_exchange, queue: other, routingKey: "rotate" },
      { exchange: topology.deadLetterExchange ?? "", queue: rejected, routingKey: "" }
    ]
  })
  if (retries !== undefined) {
    const queues = [`${queue}.retry.200ms.quorum`, `${queue}.dlq`]
    yield* Effect.addFinalizer(() => Effect.orDie(broker.remove({ queues })))
  }
  const consumer = yield* TaskConsumer.make({
    handler,
    ...(retries !== undefined && { retryPolicy: new RetryPolicy({ max_retries: retries, delay_ms: 200 }) })
  }).pipe(Effect.provideService(BrokerClient, client))
  yield* Effect.forkScoped(consumer.run)
  yield* Effect.addFinalizer(() => consumer.stop)
  return { client, queue, rejected, other, deadLetters: `${queue}.dlq`, statuses: routed.status_queue }
})

/** Takes everything out of a queue, as it is. */
export const bytes = Effect.fnUntraced(function* (queue: string) {
  const { get } = yield* (yield* Broker).channel({ prefetch: 100 })
  const all: Array<{ readonly body: Buffer; readonly headers: Readonly<Record<string, Field>> }> = []
  for (;;) {
    const delivery = Option.getOrUndefined(yield* get(queue))
    if (delivery === undefined) return all
    delivery.settle("ack")
    all.push({ body: Buffer.from(delivery.content), headers: delivery.properties.headers ?? {} })
  }
}, Effect.scoped)
