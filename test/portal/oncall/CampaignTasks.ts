import { Effect, Layer } from "effect"
import * as Handler from "../../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import { LifecycleStatusConfig } from "../../../src/messaging/topology/StatusSettings.ts"
import { RoutedTasksSharedStatusTopology } from "../../../src/messaging/topology/TaskTopology.ts"
import { defineTasks } from "../../../src/tasks/Tasks.ts"

const topology = new RoutedTasksSharedStatusTopology({
  tasks_exchange: "campaign.tasks",
  tasks_queue: "campaign.letters",
  task_types: ["letter", "note", "poem"],
  status_exchange: "campaign.status",
  status_queue: "campaign.status",
  prefetch_count: 4
})

/** Letters and poems take longer than any test; notes are done at once. */
const writer = TaskConsumer.layer({
  consumerName: "campaign-writer",
  lifecycleStatuses: new LifecycleStatusConfig({ enabled: true }),
  handler: Handler.make(({ task_type }) => (task_type === "note" ? Effect.void : Effect.sleep("10 minutes")))
}).pipe(Layer.provide(BrokerClient.layer({ topology })))

export const letters = Array.from({ length: 120 }, (_, n) => `letter-${n}`)
export const notes = ["note-0", "note-1"]
export const poem = "poem-0"

/** The first letters run, and the others wait. */
const publisher = Layer.effectDiscard(
  Effect.gen(function* () {
    const client = yield* BrokerClient
    for (const task_id of letters)
      yield* client.publishStatus({ task_id, task_type: "letter", status: "pending", meta: {} })
    yield* client.publishTasks([
      ...notes.map((task_id) => ({ task_id, task_type: "note", payload: {} })),
      { task_id: poem, task_type: "poem", payload: {} },
      ...letters.map((task_id) => ({ task_id, task_type: "letter", payload: {} }))
    ])
  }).pipe(Effect.orDie, Effect.delay("1 second"), Effect.forkScoped)
).pipe(Layer.provide(BrokerClient.layer({ topology })))

export default defineTasks({ topologies: [topology], workers: Layer.merge(writer, publisher) })
