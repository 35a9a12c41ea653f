import { Effect, Layer, Schema } from "effect"
import { defineTasks } from "../../src/index.ts"
import {
  BrokerClient,
  Handler,
  RetryPolicy,
  RoutedTasksSharedStatusTopology,
  SharedTasksSharedStatusTopology,
  TaskConsumer
} from "../../src/messaging/index.ts"

/** The names of the queues are those of one test. */
const name = process.env["OWN_TASKS"] ?? "svc-test-own"
const statuses = { status_exchange: `${name}.status`, status_queue: `${name}.status` }

export const orders = new RoutedTasksSharedStatusTopology({
  ...statuses,
  tasks_exchange: `${name}.orders`,
  tasks_queue: `${name}.orders`,
  task_types: ["pay"]
})
export const letters = new SharedTasksSharedStatusTopology({
  ...statuses,
  tasks_exchange: `${name}.letters`,
  tasks_queue: `${name}.letters`,
  tasks_routing_key: "letters"
})

const Order = Schema.Struct({ total: Schema.Int })
const Letter = Schema.Struct({ to: Schema.String })

const cashier = TaskConsumer.layer({
  retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: 100 }),
  handler: Handler.byTaskType({
    pay: Handler.withPayload(Order, ({ payload }, context) =>
      payload.total > 100 && context.headers["x-svc-replayed-from-dlq"] !== true
        ? Effect.fail(new Handler.PermanentFailure({ message: "too much" }))
        : context.publishStatus("paid", { result: { total: payload.total } })
    )
  })
}).pipe(Layer.provide(BrokerClient.layer({ topology: orders })))

const postman = TaskConsumer.layer({
  handler: Handler.withPayload(Letter, (_, context) => context.publishStatus("paid"))
}).pipe(Layer.provide(BrokerClient.layer({ topology: letters })))

export const tasks = defineTasks({
  topologies: [orders, letters],
  workers: Layer.merge(cashier, postman),
  terminalStatuses: ["paid", "failed"],
  prefixes: { statuses: "own", deadLetters: "own" }
})
