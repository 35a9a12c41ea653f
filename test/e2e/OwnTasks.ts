import { join } from "node:path"
import { Effect, Layer } from "effect"
import {
  BrokerClient,
  RoutedTasksSharedStatusTopology,
  SharedTasksSharedStatusTopology
} from "../../src/messaging/index.ts"
import { Broker } from "../../src/services/Broker.ts"
import { root } from "../Guides.ts"
import * as RunningBroker from "../RunningBroker.ts"

/** The module, which finds the name of its queues in `OWN_TASKS`. */
export const module = join(root, "test/e2e/OwnTasksModule.ts")

/** The topologies of the module, with the names of one test. */
export const topologiesOf = (name: string) => {
  const statuses = { status_exchange: `${name}.status`, status_queue: `${name}.status` }
  return {
    orders: new RoutedTasksSharedStatusTopology({
      ...statuses,
      tasks_exchange: `${name}.orders`,
      tasks_queue: `${name}.orders`,
      task_types: ["pay"]
    }),
    letters: new SharedTasksSharedStatusTopology({
      ...statuses,
      tasks_exchange: `${name}.letters`,
      tasks_queue: `${name}.letters`,
      tasks_routing_key: "letters"
    })
  }
}

type Topologies = ReturnType<typeof topologiesOf>

export const publish = (
  topology: Topologies[keyof Topologies],
  task: { readonly task_id: string; readonly task_type?: string; readonly payload: object }
) =>
  Effect.flatMap(BrokerClient, (client) => client.publishTask({ ...task, payload: { ...task.payload } })).pipe(
    Effect.provide(BrokerClient.layer({ topology }).pipe(Layer.provide(RunningBroker.layer())))
  )

/** Everything of this name goes with the scope. */
export const removed = (name: string) =>
  Effect.addFinalizer(() =>
    Effect.flatMap(Broker, ({ remove }) =>
      remove({
        queues: ["status", "orders", "letters", "orders.dlq", "orders.retry.100ms.quorum", "orders.retry.100ms"].map(
          (queue) => `${name}.${queue}`
        ),
        exchanges: ["status", "orders", "letters"].map((exchange) => `${name}.${exchange}`)
      })
    ).pipe(Effect.provide(RunningBroker.layer()), Effect.ignore)
  )
