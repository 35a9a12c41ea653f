import { Effect, Layer, Schema } from "effect"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../../src/messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig } from "../../../src/messaging/topology/StatusSettings.ts"
import { RoutedTasksSharedStatusTopology } from "../../../src/messaging/topology/TaskTopology.ts"
import { defineTasks } from "../../../src/tasks/Tasks.ts"

const topology = new RoutedTasksSharedStatusTopology({
  tasks_exchange: "parcels.tasks",
  tasks_queue: "parcels.work",
  task_types: ["send", "weigh"],
  status_exchange: "parcels.status",
  status_queue: "parcels.status"
})

const Parcel = Schema.Struct({
  to: Schema.String,
  items: Schema.Array(Schema.Struct({ name: Schema.NonEmptyString, count: Schema.Int }))
})

const packer = TaskConsumer.layer({
  retryPolicy: new RetryPolicy({ max_retries: 0 }),
  lifecycleStatuses: new LifecycleStatusConfig({ enabled: true }),
  handler: Handler.byTaskType({
    send: Handler.withPayload(Parcel, () => Effect.void),
    weigh: Handler.make(() => Effect.fail(new Handler.PermanentFailure({ message: "the scales are broken" })))
  })
})

/** Parcels whose payload does not fit the schema of `send`, and one of a type without a schema. */
const publisher = Layer.effectDiscard(
  Effect.gen(function* () {
    const { publishTasks } = yield* BrokerClient
    const payload = {
      items: [
        { name: "pen", count: 1 },
        { name: "<b>ink</b>", count: "two" }
      ]
    }
    yield* publishTasks([
      ...["unfit-1", "unfit-2"].map((task_id) => ({ task_id, task_type: "send", payload })),
      { task_id: "unknown-1", task_type: "weigh", payload: {} }
    ])
  }).pipe(Effect.orDie, Effect.delay("1 second"), Effect.forkScoped)
)

export default defineTasks({
  topologies: [topology],
  workers: Layer.merge(packer, publisher).pipe(Layer.provide(BrokerClient.layer({ topology })))
})
