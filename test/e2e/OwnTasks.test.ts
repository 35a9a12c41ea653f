import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { connect } from "../status/EventClient.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"
import * as OwnTasks from "./OwnTasks.ts"

const ask = (url: string) => Effect.promise(async () => JSON.parse(await (await fetch(url)).text()))

describe.skipIf(RunningBroker.server === null || TemporaryPrefix.server === null)(
  "tasks of a module of one's own",
  () => {
    it.live(
      "are worked on, followed, dead-lettered, replayed and drawn, in a process for each role",
      () =>
        Effect.gen(function* () {
          const name = RunningBroker.name("own")
          yield* OwnTasks.removed(name)
          const environment = {
            OWN_TASKS: name,
            RABBITMQ_URL: RunningBroker.server ?? "",
            REDIS_URL: TemporaryPrefix.server ?? "",
            REDIS_KEY_PREFIX: yield* TemporaryPrefix.make
          }
          const start = (role: "messaging" | "status" | "graph") =>
            RunningGateway.start({ role, tasks: OwnTasks.module, environment })
          const [messaging, status, graph] = yield* Effect.all([start("messaging"), start("status"), start("graph")], {
            concurrency: 3
          })
          assert.include(messaging.output(), `  tasks     ${OwnTasks.module}`)

          const { letters, orders } = OwnTasks.topologiesOf(name)
          yield* OwnTasks.publish(orders, { task_id: "small", task_type: "pay", payload: { total: 5 } })
          yield* OwnTasks.publish(orders, { task_id: "large", task_type: "pay", payload: { total: 500 } })
          yield* OwnTasks.publish(letters, { task_id: "letter", payload: { to: "Zoë" } })

          for (const task of ["small", "letter"]) {
            const reader = yield* connect(`${status.status}/events/${task}`)
            yield* reader.until(({ ended, text }) => ended && text.includes('"status":"paid"'))
          }
          const { items } = yield* eventually(
            ask(`${status.status}/dlq/messages?task_id=large`),
            ({ items }) => items.length === 1,
            "20 seconds"
          )
          assert.deepInclude(items[0], { queue_name: `${name}.orders.dlq`, exception_type: "PermanentFailure" })
          const command = RunningGateway.command(["replay", "--queue", `${name}.orders.dlq`], {
            SVC_STATUS_URL: status.status
          })
          assert.strictEqual(yield* Effect.promise(() => command.exited), 0, command.output())
          const replayed = yield* connect(`${status.status}/events/large`)
          yield* replayed.until(({ ended, text }) => ended && text.includes('"status":"paid"'))

          const { summary } = yield* eventually(
            ask(`${graph.status}/executions/large/graph`),
            ({ summary }) => summary?.status === "paid",
            "20 seconds"
          )
          assert.deepInclude(summary, { graph_completeness: "full" })
          const metrics = yield* Effect.promise(async () => (await fetch(`${status.control}/admin-ui/metrics`)).text())
          assert.include(metrics, `svc_queue_messages{queue="${name}.letters"}`)
        }),
      120_000
    )
  }
)
