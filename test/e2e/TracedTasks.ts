import { join } from "node:path"
import { Effect, Layer } from "effect"
import { BrokerClient } from "../../src/messaging/index.ts"
import { Broker, type Fields } from "../../src/services/Broker.ts"
import { root } from "../Guides.ts"
import * as RunningBroker from "../RunningBroker.ts"
import { topologyOf } from "./TracedTasksModule.ts"

/** The module whose workflow calls the gateway, fails once and goes on. */
export const module = join(root, "test/e2e/TracedTasksModule.ts")

/** The names of its queues, which go with the scope. */
export const named = Effect.gen(function* () {
  const name = RunningBroker.name("traced")
  const queues = ["write", "print"].flatMap((queue) =>
    [queue, `${queue}.dlq`, `${queue}.retry.100ms`, `${queue}.retry.100ms.quorum`].map((queue) => `${name}.${queue}`)
  )
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(Broker, ({ remove }) =>
      remove({ queues: [...queues, `${name}.status`], exchanges: [name, `${name}.status`] })
    ).pipe(Effect.provide(RunningBroker.layer()), Effect.ignore)
  )
  return name
})

/** Starts a workflow, as a program of its own does. */
export const order = (
  name: string,
  task_id: string,
  payload: Readonly<Record<string, string>>,
  headers: Fields = {}
): Effect.Effect<void> =>
  Effect.flatMap(BrokerClient, ({ publishToEntry }) =>
    publishToEntry({ task_id, payload: { ...payload } }, "report", { headers })
  ).pipe(
    Effect.provide(BrokerClient.layer({ topology: topologyOf(name) }).pipe(Layer.provide(RunningBroker.layer()))),
    Effect.orDie
  )
