import { openSync, writeSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Clock, Effect, Layer, Redacted } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as Handler from "../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import * as RetryHeaders from "../../src/messaging/retry/RetryHeaders.ts"
import { Broker, type Publication } from "../../src/services/Broker.ts"
import * as FaultyTasks from "./FaultyTasks.ts"
import type { Entry } from "./TaskLedger.ts"

/** A worker in a process of its own, for the run with faults: `FaultWorker.ts <url> <journal>`. */
const [, , url = "", journal = ""] = process.argv

const file = openSync(journal, "a")

/** What was written is the kernel's, and outlives a kill. */
const note = (entry: Entry) => void writeSync(file, `${JSON.stringify(entry)}\n`)

/** Writes down what becomes of the publishes of retries and dead letters. */
const noted = Layer.effect(
  Broker,
  Effect.map(Broker, (broker) =>
    Broker.of({
      ...broker,
      publish: (publication) => {
        const where = placeOf(publication)
        if (where === undefined) return broker.publish(publication)
        note({ _tag: "Sending", ...where })
        return Effect.tap(broker.publish(publication), ({ _tag }) =>
          Effect.sync(() => note({ _tag: "Answered", ...where, known: _tag !== "Unknown" }))
        )
      }
    })
  )
)

const placeOf = ({ properties: { headers = {} }, purpose, routingKey }: Publication) => {
  const task = headers["task_id"]
  if (purpose !== "retries" || typeof task !== "string") return undefined
  const attempt = RetryHeaders.attemptOf(headers)
  return { task, attempt: routingKey === FaultyTasks.deadLetterQueue ? attempt + 1 : attempt }
}

const handler = Handler.make(({ task_id }, { retryAttempt }) =>
  Effect.gen(function* () {
    yield* Effect.sleep(FaultyTasks.takes(task_id))
    if (FaultyTasks.isFailing(task_id, retryAttempt)) return yield* Effect.fail("as it was told to")
    note({ _tag: "Handled", task: task_id })
  })
)

const worker = Layer.unwrap(
  Effect.map(Clock.clockWith(Effect.succeed), (clock) =>
    TaskConsumer.layer({
      handler,
      retryPolicy: FaultyTasks.retryPolicy,
      idleRetrySeconds: 0.2,
      observationSink: (observed) => {
        if (observed.event_type !== "TaskMessageReceived" || observed.task_id === null) return
        const { redelivered, retry_attempt: attempt, task_id: task } = observed
        note({ _tag: "Received", at: clock.currentTimeMillisUnsafe(), task, attempt, redelivered })
      }
    })
  )
)

worker.pipe(
  Layer.provide(BrokerClient.layer({ topology: FaultyTasks.topology })),
  Layer.provide(noted),
  Layer.provide(
    BrokerAmqp.layer({
      url: Redacted.make(url),
      name: "fault-worker",
      whenUnreachable: "wait",
      heartbeatSeconds: 1,
      publishWithin: "5 seconds"
    })
  ),
  Layer.launch,
  NodeRuntime.runMain
)
