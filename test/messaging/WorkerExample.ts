import { Effect, Layer, Schema } from "effect"
import {
  BrokerClient,
  Handler,
  RetryPolicy,
  RetryStatusConfig,
  RoutedTasksSharedStatusTopology,
  TaskConsumer
} from "svc-runtime/messaging"

export const topology = new RoutedTasksSharedStatusTopology({
  tasks_exchange: "mail.tasks",
  tasks_queue: "mail.send",
  task_types: ["send"],
  status_exchange: "mail.status",
  status_queue: "mail.status"
})
const Mail = Schema.Struct({ to: Schema.String, text: Schema.String })

/** Declares the topology and publishes. Needs a `Broker`. */
export const client = BrokerClient.layer({ topology })

/**
 * The options of the worker. A failed mail is retried up to five times, 10 seconds apart. Its statuses say so: `retrying`
 * and, when it is a dead letter, `failed`.
 */
export const work = {
  retryPolicy: new RetryPolicy({ max_retries: 5, delay_ms: 10_000 }),
  retryStatuses: new RetryStatusConfig({ enabled: true }),
  handler: Handler.byTaskType({
    send: Handler.withPayload(Mail, ({ payload }, context) =>
      Effect.andThen(Effect.log(`to ${payload.to}`), context.publishStatus("sent"))
    )
  })
}

/** Sends mails for as long as the layer exists. */
export const worker = TaskConsumer.layer(work).pipe(Layer.provide(client))

/** Publishes a mail as a task. Needs the client. */
export const send = (task_id: string, mail: typeof Mail.Type) =>
  Effect.flatMap(BrokerClient, (client) => client.publishTask({ task_id, task_type: "send", payload: mail }))
