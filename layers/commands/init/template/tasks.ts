import { Effect, Layer } from "effect"
import { defineTasks } from "svc-runtime"
import {
  BrokerClient,
  Handler,
  RetryPolicy,
  RetryStatusConfig,
  RoutedTasksSharedStatusTopology,
  TaskConsumer
} from "svc-runtime/messaging"
import { api } from "./api.ts"
import { Mailer, outbox } from "./mailer.ts"
import { Receipt, textOf } from "./receipt.ts"

/** The exchanges and queues, which the program declares on the broker. */
export const topology = new RoutedTasksSharedStatusTopology({
  tasks_exchange: "shop.tasks",
  tasks_queue: "shop.receipts",
  task_types: ["receipt"],
  status_exchange: "shop.status",
  status_queue: "shop.status"
})

/** Publishes to the topology. */
export const client = BrokerClient.layer({ topology })

/** Sends receipts. After a failure it tries again up to five times, ten seconds apart. Then the task is a dead letter. */
export const worker = TaskConsumer.layer({
  retryPolicy: new RetryPolicy({ max_retries: 5, delay_ms: 10_000 }),
  retryStatuses: new RetryStatusConfig({ enabled: true }),
  handleWithin: "30 seconds",
  handler: Handler.byTaskType({
    receipt: Handler.withPayload(Receipt, ({ payload, task_id }, context) =>
      Effect.gen(function* () {
        const mailer = yield* Mailer
        // The broker may deliver a task twice, so the key of the mail is the id of the task.
        yield* mailer.send(task_id, payload.to, textOf(payload))
        yield* context.publishStatus("sent")
      })
    )
  })
})

/** What `svc-runtime --tasks ./tasks.ts` runs. The statuses `sent` and `failed` end a task. */
export default defineTasks({
  topologies: [topology],
  workers: Layer.merge(worker, api).pipe(Layer.provide([client, outbox])),
  terminalStatuses: ["sent", "failed"]
})
