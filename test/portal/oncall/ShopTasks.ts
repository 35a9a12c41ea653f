import { Effect, Layer, Schema } from "effect"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig, RetryStatusConfig } from "../../../src/messaging/topology/StatusSettings.ts"
import { RoutedTasksSharedStatusTopology } from "../../../src/messaging/topology/TaskTopology.ts"
import { defineTasks } from "../../../src/tasks/Tasks.ts"

/** The names of its queues begin with this. */
const shop = process.env["SHOP_TASKS"] ?? "shop"

const topology = new RoutedTasksSharedStatusTopology({
  tasks_exchange: `${shop}.tasks`,
  tasks_queue: `${shop}.mails`,
  task_types: ["mail"],
  status_exchange: `${shop}.status`,
  status_queue: `${shop}.status`,
  prefetch_count: 4
})

const Mail = Schema.Struct({
  to: Schema.String,
  order: Schema.Number,
  isRefused: Schema.Boolean,
  api_key: Schema.optionalKey(Schema.String)
})

/** Refused mails fail for good until somebody edits them. */
const mailer = TaskConsumer.layer({
  consumerName: "shop-mailer",
  retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: 200 }),
  retryStatuses: new RetryStatusConfig({ enabled: true }),
  lifecycleStatuses: new LifecycleStatusConfig({ enabled: true }),
  handler: Handler.byTaskType({
    mail: Handler.withPayload(Mail, ({ payload: { isRefused, to } }) =>
      isRefused ? Effect.fail(new Handler.PermanentFailure({ message: `550 no mailbox ${to}` })) : Effect.void
    )
  })
})

export const hostile = "<img src=x onerror=alert(1)>\u202Egnp.exe"
export const refused = 8
export const secret = "sk-canary-of-a-mail"

const mail = (task_id: string, order: number, isRefused: boolean) => ({
  task_id,
  task_type: "mail",
  payload: {
    to: task_id === hostile ? "javascript:alert(1)" : `${task_id}@example.org`,
    order,
    isRefused,
    ...(task_id === "refused-6" && { api_key: secret })
  }
})

const publisher = Layer.effectDiscard(
  Effect.gen(function* () {
    const client = yield* BrokerClient
    const failing = Array.from({ length: refused - 1 }, (_, order) => mail(`refused-${order}`, order, true))
    yield* client.publishTasks([
      ...failing,
      mail(hostile, 99, true),
      mail("sent-1", 1, false),
      mail("sent-2", 2, false)
    ])
  }).pipe(Effect.orDie, Effect.delay("1 second"), Effect.forkScoped)
)

export default defineTasks({
  topologies: [topology],
  workers: Layer.merge(mailer, publisher).pipe(Layer.provide(BrokerClient.layer({ topology })))
})
