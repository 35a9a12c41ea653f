import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SharedTasksSharedStatusTopology } from "../../../src/messaging/topology/TaskTopology.ts"
import * as TopologyPlan from "../../../src/messaging/topology/TopologyPlan.ts"
import { Broker, type Examination } from "../../../src/services/Broker.ts"

const topology = new SharedTasksSharedStatusTopology({
  status_exchange: "status.exchange",
  status_queue: "status.queue",
  tasks_exchange: "tasks.exchange",
  tasks_queue: "tasks.queue",
  tasks_routing_key: "tasks",
  task_consumer_timeout_ms: 600_000
})

describe("a plan", () => {
  it.effect("says what exists, what differs with the way out, and what would be declared", () =>
    Effect.gen(function* () {
      const differs = "inequivalent arg 'x-message-ttl' for queue 'tasks.queue': received 5, current is 6"
      const plan = yield* TopologyPlan.plan(topology).pipe(
        Effect.provide(
          broker("3.10.8", {
            "tasks.exchange": { _tag: "Same" },
            "tasks.queue": { _tag: "Differs", differs }
          })
        )
      )
      assert.isFalse(plan.isPossible)
      assert.deepStrictEqual(TopologyPlan.render(plan).split("\n"), [
        "exists     exchange tasks.exchange",
        "declare    exchange status.exchange",
        "declare    queue status.queue",
        `differs    queue tasks.queue: ${differs}`,
        "           Revert the change, or use another queue name and let the old queue drain, " +
          "or delete the queue once it is empty.",
        "declare    2 bindings (declaring an existing binding changes nothing)",
        "warning    task_consumer_timeout_ms has no effect on classic queues (RabbitMQ 3.10.8)",
        "Declaring this topology will fail, and nothing was changed. Resolve the refused and differing lines above first."
      ])
    })
  )

  it.effect("is possible where nothing is in the way", () =>
    Effect.gen(function* () {
      const plan = yield* TopologyPlan.plan(topology).pipe(Effect.provide(broker("3.13.7", {})))
      assert.isTrue(plan.isPossible)
      assert.deepStrictEqual(
        plan.steps.map(({ examination, name }) => `${examination._tag} ${name}`),
        ["Missing tasks.exchange", "Missing status.exchange", "Missing status.queue", "Missing tasks.queue"]
      )
      assert.match(TopologyPlan.render(plan), /will succeed\.$/)
    })
  )

  it.effect("is impossible on a broker that refuses an argument, whatever exists there", () =>
    Effect.gen(function* () {
      const quorum = new SharedTasksSharedStatusTopology({
        status_exchange: "s",
        status_queue: "sq",
        tasks_exchange: "t",
        tasks_queue: "tq",
        tasks_routing_key: "",
        task_queue_type: "quorum",
        task_max_priority: 5
      })
      const plan = yield* TopologyPlan.plan(quorum).pipe(Effect.provide(broker("3.13.7", {})))
      assert.isFalse(plan.isPossible)
      assert.match(
        TopologyPlan.render(plan),
        /^refused {4}task_max_priority requires a classic queue before RabbitMQ 4\.0/
      )
    })
  )
})

function broker(version: string, found: Readonly<Record<string, Examination>>) {
  return Layer.mock(Broker, {
    server: Effect.succeed({ product: "RabbitMQ", version }),
    examine: (declared) => {
      const { name } = "queue" in declared ? declared.queue : declared.exchange
      return Effect.succeed(found[name] ?? { _tag: "Missing" })
    }
  })
}
