import { Effect, Layer, Schema } from "effect"
import {
  BrokerClient,
  Handler,
  RetryPolicy,
  RoutedTasksSharedStatusTopology,
  TaskConsumer
} from "../../src/messaging/index.ts"

const topology = new RoutedTasksSharedStatusTopology({
  tasks_exchange: "mail.tasks",
  tasks_queue: "mail.send",
  task_types: ["send"],
  status_exchange: "mail.status",
  status_queue: "mail.status"
})
const Mail = Schema.Struct({ to: Schema.String, text: Schema.String })

/** Needs a `Broker`. */
export const client = BrokerClient.layer({ topology })

/** What a mail takes. What fails is tried again after 10 seconds, five times. */
export const work = {
  retryPolicy: new RetryPolicy({ max_retries: 5, delay_ms: 10_000 }),
  handler: Handler.byTaskType({
    send: Handler.withPayload(Mail, ({ payload }, context) =>
      Effect.andThen(Effect.log(`to ${payload.to}`), context.publishStatus("sent"))
    )
  })
}

/** Sends mail for as long as the layer is there. */
export const worker = TaskConsumer.layer(work).pipe(Layer.provide(client))

/** Has a mail sent, from anywhere that has the client. */
export const send = (task_id: string, mail: typeof Mail.Type) =>
  Effect.flatMap(BrokerClient, (client) => client.publishTask({ task_id, task_type: "send", payload: mail }))
